import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The rules of a chat that come with `hato-dev`.
@Suite(.timeLimit(.minutes(5)))
struct ChatRules {
    private static let cases = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Services/Dev/hato-dev/Rules/chat.cases.json").standardizedFileURL.path

    @Test func everyRuleIsTrueAndFalseInTheCasesAsExpected() async throws {
        let ended = try await Executable.run(
            "hato-messages", ["rules", "test", ChatRules.cases, "--coverage", "--json"])
        #expect(ended.code == 0, "\(ended.text) \(ended.error)")
        #expect(ended.output["failures"] == [])
        #expect(try #require(ended.output["cases"]?.number) > 90)
    }

    @Test func wrongExpectationIsReported() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "cases.json")
        let rules = (ChatRules.cases as NSString).deletingLastPathComponent + "/chat.rules.json"
        let table: JSONValue = [
            "rules": .string(rules), "cases": [["operation": "get", "path": "/chats/c1", "allowed": true]],
        ]
        var writer = JSONWriter()
        writer.write(table)
        try Data(writer.bytes).write(to: file)
        let ended = try await Executable.run("hato-messages", ["rules", "test", file.path, "--json"])
        #expect(ended.code == 1)
        #expect(ended.output["failures"]?.array?.count == 1)
    }

    /// In the form of compilers, each at the beginning of a line, so that editors find them.
    @Test func wrongRulesAreReportedWithFileLineAndColumn() async throws {
        let folder = try TemporaryFolder()
        let text = "{\n  \"rules\": {\n    \".read\": \"tru\",\n    \".write\": \"fals\"\n  }\n}"
        let file = try folder.write("wrong.rules.json", text)
        let cases = try folder.write("cases.json", #"{"rules": "wrong.rules.json", "cases": []}"#)
        try await TestStack.run { stack in
            let environment = [
                "HATO_MESSAGES_SERVER": stack.announcement["messages"]?.string ?? "",
                "HATO_ADMIN_KEY_FILE": stack.announcement["adminKeyFile"]?.string ?? "",
            ]
            for command in [
                ["rules", "set", file], ["rules", "test", cases], ["databases", "create", "other", "--rules", file],
            ] {
                let ended = try await Executable.run("hato-messages", command, environment)
                #expect(ended.code == 1, "\(command): \(ended.error)")
                let lines = ended.error.split(separator: "\n")
                for start in ["\(file):3:", "\(file):4:"] {
                    #expect(lines.contains { $0.hasPrefix(start) }, "\(command): \(ended.error)")
                }
            }
        }
    }

    @Test func stackWithTheRulesOfAChatLetsOnlyMembersWrite() async throws {
        try await TestStack.run(["--rules", "chat"]) { stack in
            let (masuo, tara, stranger) = (
                try await stack.newUser(), try await stack.newUser(), try await stack.newUser()
            )
            let mine = stack.client(.messages, as: .user(idToken: masuo.idToken))
            _ = try await mine.call(
                method: "messages.set",
                params: [
                    "path": "/chats/pair",
                    "value": ["ids": ["first_user_id": .string(masuo.uid), "second_user_id": .string(tara.uid)]],
                ])
            func post(_ user: Auth.Session, as sender: Auth.Session) async throws {
                let client = stack.client(.messages, as: .user(idToken: user.idToken))
                _ = try await client.call(
                    method: "messages.push",
                    params: [
                        "path": "/chats/pair/messages",
                        "value": [
                            "date": [".sv": "timestamp"], "senderId": .string(sender.uid), "text": "ただいま",
                        ],
                    ])
            }
            try await post(masuo, as: masuo)
            try await post(tara, as: tara)
            await #expect(throws: RPCError.self) { try await post(tara, as: masuo) }
            await #expect(throws: RPCError.self) { try await post(stranger, as: stranger) }
            let read = try await mine.call(
                method: "messages.get",
                params: ["path": "/chats/pair/messages", "query": ["orderBy": "date", "limitToLast": 1]])
            #expect(read["value"]?.object?.members.first?.value["senderId"] == .string(tara.uid))
        }
    }
}
