/// The one table, and each of its lines on stderr as soon as it is known.
struct Table: Sendable {
    struct Row: Sendable {
        var what: String
        var figure: String
        var latency = ""
        var note = ""

        var cells: [String] { [what, figure, latency, note] }
    }

    var rows: [Row] = []

    mutating func add(_ what: String, _ figure: String, latency: Latencies? = nil, note: String = "") {
        let row = Row(what: what, figure: figure, latency: latency.map(\.text) ?? "", note: note)
        rows.append(row)
        Progress.say("\(what): \(figure)  \(row.latency)  \(note)")
    }

    var text: String {
        let all = [["what", "figure", "p50 / p99 µs", "beside"]] + rows.map(\.cells)
        let widths = (0..<4).map { column in all.map { $0[column].count }.max() ?? 0 }
        let lines = all.map { cells in
            zip(cells, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: " | ")
        }
        let rule = widths.map { String(repeating: "-", count: $0) }.joined(separator: "-|-")
        return ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
    }
}

/// Microseconds, each of them kept.
struct Latencies: Sendable {
    private var sorted: [UInt32] = []

    init(_ microseconds: [UInt32]) { sorted = microseconds.sorted() }

    func at(_ share: Double) -> Double {
        guard !sorted.isEmpty else { return 0 }
        return Double(sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))])
    }

    var text: String { sorted.isEmpty ? "" : "\(Int(at(0.5))) / \(Int(at(0.99)))" }
}

/// One window of a load.
struct Window: Sendable {
    var perSecond: Double
    var latencies: Latencies

    static func median(_ windows: [Window]) -> Window {
        windows.sorted { $0.perSecond < $1.perSecond }[windows.count / 2]
    }

    var rate: String { "\(Rate.text(perSecond))/s" }
}

enum Rate {
    static func text(_ value: Double) -> String {
        let digits = String(Int(value.rounded()))
        guard digits.count > 3 else { return digits }
        var out = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { out += "," }
            out.append(digit)
        }
        return out
    }
}
