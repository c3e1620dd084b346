import Foundation

/// The goal of a row.
struct Goal: Sendable {
    enum Figure: Sendable {
        case value, p50, p99, ratio
    }

    enum Bound: Sendable {
        case atLeast(Double)
        case atMost(Double)
    }

    var figure: Figure
    var bound: Bound

    init(_ figure: Figure, _ bound: Bound) {
        self.figure = figure
        self.bound = bound
    }
}

/// The one table, and each of its lines on stderr as soon as it is known.
struct Table: Sendable {
    struct Row: Sendable {
        var what: String
        var value: Double
        /// The unit of `value`, e.g. `posts/s`, `kB`.
        var unit: String
        /// Microseconds.
        var p50: Double?
        var p99: Double?
        /// The ratio to another figure that was measured in turn with this one.
        var ratio: (value: Double, to: String)?
        var goals: [Goal] = []
    }

    var rows: [Row] = []

    mutating func add(_ row: Row) {
        rows.append(row)
        Progress.say(row.cells.filter { !$0.isEmpty }.joined(separator: "  "))
    }

    mutating func add(_ what: String, _ window: Window, _ unit: String, goals: [Goal] = []) {
        add(Row(what, window, unit, goals: goals))
    }

    // MARK: As text

    var text: String {
        let all = [["what", "figure", "p50 / p99 µs", "beside", "goal"]] + rows.map(\.cells)
        let widths = (0..<5).map { column in all.map { $0[column].count }.max() ?? 0 }
        let lines = all.map { cells in
            zip(cells, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: " | ")
        }
        let rule = widths.map { String(repeating: "-", count: $0) }.joined(separator: "-|-")
        return ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
    }

    // MARK: As JSON

    private struct JSONRow: Encodable {
        struct JSONGoal: Encodable {
            var goal: String
            var isReached: Bool
        }

        var what: String
        var value: Double
        var unit: String
        var p50Us: Double?
        var p99Us: Double?
        var ratio: Double?
        var ratioTo: String?
        var goals: [JSONGoal]

        init(_ row: Row) {
            (what, value, unit, p50Us, p99Us) = (row.what, row.value, row.unit, row.p50, row.p99)
            (ratio, ratioTo) = (row.ratio?.value, row.ratio?.to)
            goals = row.goals.map { JSONGoal(goal: row.text(of: $0), isReached: row.reaches($0)) }
        }
    }

    /// An array of rows, with the figures as they were measured.
    func writeJSON(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(rows.map(JSONRow.init)).write(to: URL(fileURLWithPath: path))
    }
}

extension Table.Row {
    init(_ what: String, _ window: Window, _ unit: String, goals: [Goal] = []) {
        self.init(
            what: what, value: window.perSecond, unit: unit, p50: window.p50, p99: window.p99, goals: goals)
    }

    var cells: [String] {
        let latency = p50.map { "\(Figure.text($0)) / \(Figure.text(p99 ?? 0))" } ?? ""
        let beside = ratio.map { "\(Figure.text($0.value)) × \($0.to)" } ?? ""
        let goals = goals.map { "\(text(of: $0)): \(reaches($0) ? "reached" : "MISSED")" }
        return [what, "\(Figure.text(value)) \(unit)", latency, beside, goals.joined(separator: ", ")]
    }

    func reaches(_ goal: Goal) -> Bool {
        guard let figure = figure(of: goal) else { return false }
        return switch goal.bound {
        case .atLeast(let bound): figure >= bound
        case .atMost(let bound): figure <= bound
        }
    }

    private func figure(of goal: Goal) -> Double? {
        switch goal.figure {
        case .value: value
        case .p50: p50
        case .p99: p99
        case .ratio: ratio?.value
        }
    }

    func text(of goal: Goal) -> String {
        let bound =
            switch goal.bound {
            case .atLeast(let bound): "≥ \(Figure.text(bound))"
            case .atMost(let bound): "≤ \(Figure.text(bound))"
            }
        return switch goal.figure {
        case .value: "\(bound) \(unit)"
        case .p50: "p50 \(bound) µs"
        case .p99: "p99 \(bound) µs"
        case .ratio: "\(bound) ×"
        }
    }
}

enum Figure {
    /// Whole numbers with thousands separators; two digits behind the point below 10, one below 100.
    static func text(_ value: Double) -> String {
        if value != value.rounded(), abs(value) < 100 {
            return String(format: abs(value) < 10 ? "%.2f" : "%.1f", value)
        }
        let digits = String(Int(value.rounded()).magnitude)
        var out = value.rounded() < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { out += "," }
            out.append(digit)
        }
        return out
    }
}
