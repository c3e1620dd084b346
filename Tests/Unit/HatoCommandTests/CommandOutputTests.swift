import HatoModel
import Synchronization
import Testing

@testable import HatoCommand

/// An output that records what is written.
final class Recording: Sendable {
    private let text = Mutex((out: "", err: ""))
    var out: String { text.withLock { $0.out } }
    var err: String { text.withLock { $0.err } }

    func output(isForPeople: Bool, showsProgress: Bool = false) -> CommandOutput {
        CommandOutput(
            isForPeople: isForPeople, showsProgress: showsProgress,
            standardOutput: { bytes throws(CommandFailure) in
                self.text.withLock { $0.out += String(decoding: bytes, as: UTF8.self) }
            },
            standardError: { bytes throws(CommandFailure) in
                self.text.withLock { $0.err += String(decoding: bytes, as: UTF8.self) }
            })
    }
}

@Suite struct CommandOutputTests {
    private let users: JSONValue = [
        "users": [["uid": "masuo", "name": "マスオ", "count": 5], ["uid": "sazae", "name": nil, "count": 12]]
    ]

    @Test func scriptsGetOneLineOfJSON() throws {
        let recording = Recording()
        let table = CommandTable(["uid"], of: users["users"]?.array ?? [])
        try recording.output(isForPeople: false).show(users, as: table)
        #expect(recording.out.split(separator: "\n").count == 1)
        #expect(try JSONParser.parse(recording.out) == users)
    }

    @Test func scriptsTakeOneMemberAsItIs() throws {
        let recording = Recording()
        let output = recording.output(isForPeople: false)
        try output.show(member: "idToken", of: ["idToken": "a\"b", "expiresIn": 3600])
        try output.show(member: "expiresIn", of: ["idToken": "a\"b", "expiresIn": 3600])
        #expect(recording.out == "a\"b\n3600\n")
        #expect(throws: CommandFailure.self) { try output.show(member: "uid", of: [:]) }
    }

    @Test func peopleGetATable() throws {
        let recording = Recording()
        let table = CommandTable(["uid", "name", "count"], of: users["users"]?.array ?? [])
        try recording.output(isForPeople: true).show(users, as: table)
        #expect(recording.out == "UID    NAME    COUNT\nmasuo  マスオ      5\nsazae             12\n")
    }

    @Test func cellsNeverReachTheTerminalAsCommands() {
        var table = CommandTable(["text"])
        table.append(["a\u{1B}[2Jb\nc\u{9b}d\u{202e}e"])
        #expect(table.text.split(separator: "\n").last == #"a\u{1b}[2Jb\nc\u{9b}d\u{202e}e"#)
    }

    @Test func emptyTableSaysSo() {
        #expect(CommandTable(["a"]).text == "nothing\n")
    }

    @Test func indentedJSONSaysTheSame() throws {
        let value: JSONValue = [
            "short": [1, 2, 3], "empty": [:],
            "long": .array((0..<12).map { ["name": .string("n\($0)"), "deep": [[nil, ["x": true]]]] }),
        ]
        let text = String(decoding: IndentedJSON.bytes(of: value), as: UTF8.self)
        #expect(try JSONParser.parse(text) == value)
        #expect(text.split(separator: "\n").count > 12)
        #expect(text.contains("  \"short\": [1,2,3],\n"))
    }

    @Test func progressIsDrawnOnTerminalsOnly() {
        let silent = Recording()
        var bar = ProgressBar("import", total: 10, output: silent.output(isForPeople: false))
        bar.advance()
        bar.finish()
        #expect(silent.err.isEmpty)

        let terminal = Recording()
        var drawn = ProgressBar("import", total: 10, output: terminal.output(isForPeople: false, showsProgress: true))
        drawn.advance(by: 4)
        drawn.advance(by: 6)
        drawn.finish()
        #expect(terminal.err.hasPrefix("\rimport "))
        #expect(terminal.err.contains("100 % (10/10)"))
        #expect(terminal.err.hasSuffix("\n"))
        #expect(terminal.out.isEmpty)
    }

    @Test func progressWithoutATotalCounts() {
        #expect(ProgressBar.line("export", done: 7, total: nil) == "export 7")
        #expect(ProgressBar.line("x", done: 1, total: 2).contains("50 % (1/2)"))
    }
}
