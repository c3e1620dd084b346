import HatoStorage

/// The files of a log whose end a crash has torn, cut to their last whole record; see `LogEnd`.
struct TornLogs {
    private struct Tail {
        var path: String
        var offset: Int
        var bytes: [UInt8]
    }

    private var tails: [Tail] = []

    /// A crash tears no more than what was not synced: a few groups.
    private static let bytesMax = 64 << 20

    /// Whether there are any; nothing is changed.
    static func areThere(in folder: String) throws(StoreError) -> Bool {
        for number in LogFiles.numbers(in: folder) {
            if try LogEnd.find(in: LogFiles.path(number, in: folder))?.isTorn == true { return true }
        }
        return false
    }

    init(cuttingIn folder: String) throws(StoreError) {
        for number in LogFiles.numbers(in: folder) {
            let path = LogFiles.path(number, in: folder)
            guard let end = try LogEnd.find(in: path), end.isTorn else { continue }
            let file = try OpenFile(path, access: .write)
            var bytes = [UInt8](repeating: 0, count: Self.bytesMax)
            let count = try file.read(into: &bytes, at: end.offset)
            guard count < Self.bytesMax, let last = bytes[..<count].lastIndex(where: { $0 != 0 }) else { continue }
            try file.cut(to: end.offset)
            tails.append(Tail(path: path, offset: end.offset, bytes: Array(bytes[...last])))
        }
    }

    /// When it was no crash: whoever looks into it shall find all there is.
    func putBack() {
        for tail in tails {
            guard let file = try? OpenFile(tail.path, access: .write) else { continue }
            try? file.write(tail.bytes.span, at: tail.offset)
            try? file.sync()
        }
    }
}
