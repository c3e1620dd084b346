import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

/// The commands of `hato-notifier`, as typed in a shell: the calls that they make, what they print, and what they do in
/// a stack. Secrets are in files and on standard input, never in arguments or output.
@Suite(.timeLimit(.minutes(10)))
struct NotifierCommands {
    /// Parts of the secrets in the files; that of APNs is hexadecimal.
    private static let secretMarks = ["5ecret", "5ec2e75ec2e7"]

    /// A folder with the files that the lines name.
    func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        var files: [(name: String, text: String)] = [
            ("apns", "5ec2e75ec2e75ec2e75ec2e75ec2e7\n"), ("fcm", "5ecret-fcm\n"), ("fid", "5ecret-fid\n"),
            ("reply", "5ecret-reply\n"),
            ("secret", "whsec_5ecret\n"), ("tokens", "5ecret-1\n5ecret-2\n"), ("empty", ""), ("list.json", "[]"),
            ("numbers.json", #"{"en":{"title":5}}"#), ("no-keys.json", #"{"endpoint":"https://a.example/5ecret"}"#),
            ("no-title.json", #"{"id":"MARRY_ME","actions":[{"id":"ACCEPT"}]}"#),
            ("bad-kind.json", #"{"type":"t","required":{"product_id":"text"},"template":{"title":"t"}}"#),
            ("bad-quiet.json", #"{"quiet":[{"days":["mon"],"from":"24:00","to":"07:00","mode":"hold"}]}"#),
        ]
        for (name, document) in NotifierCommandLines.documents {
            files.append((name, EncodedJSON(.object(document)).text))
        }
        let subscription = NotifierCommandLines.documents["subscription.json"] ?? [:]
        files.append(("token-and-subscription", "5ecret-id-token\n" + EncodedJSON(.object(subscription)).text))
        for (name, text) in files { _ = try folder.write(name, text) }
        return folder
    }

    /// Runs `body` for each element, some at a time: each run of a program takes a tenth of a second.
    private func forEach<Element: Sendable>(
        _ elements: [Element], _ body: @escaping @Sendable (Element) async throws -> Void
    ) async throws {
        let width = 4
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, element) in elements.enumerated() {
                if index >= width { try await group.next() }
                group.addTask { try await body(element) }
            }
            try await group.waitForAll()
        }
    }

    func expectNoSecret(_ ended: Executable.Ended, _ line: String) {
        for mark in Self.secretMarks {
            #expect(!ended.text.contains(mark) && !ended.error.contains(mark), "\(line): \(ended)")
        }
    }

    // MARK: Calls

    @Test func everyLineMakesItsCallAndPrintsItsResult() async throws {
        let folder = try folder()
        let examples = Dictionary(uniqueKeysWithValues: Notifier.methods.map { ($0.method, Self.example($0)) })
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (lines, width) = (NotifierCommandLines.all, 4)
            for part in 0..<width {
                group.addTask {
                    let notifier = try await RecordingNotifier()
                    let shell = CommandShell(
                        program: "hato-notifier", folder: folder,
                        environment: [
                            "HATO_NOTIFIER_SERVER": notifier.address,
                            "HATO_ADMIN_KEY_FILE": try folder.write("key-\(part)", RecordingNotifier.administratorKey),
                        ])
                    for line in lines.enumerated().filter({ $0.offset % width == part }).map(\.element) {
                        let ended = try await shell.run(line.line, input: line.input)
                        #expect(ended.code == 0, "\(line.line): \(ended.error)")
                        // A command that follows may end what it follows before its connection ends.
                        let calls = notifier.takeCalls().filter { $0.method != Notifier.Unfollow.method }
                        #expect(calls.map(\.method) == [line.method], "\(line.line)")
                        #expect(calls.first?.params == line.params, "\(line.line): \(String(describing: calls.first))")
                        if line.method == Notifier.Follow.method {
                            #expect(ended.output["params"]?["delivery"] == "ntf_4c7d1e9a2b6f8035-0", "\(ended.text)")
                        } else {
                            #expect(ended.output == examples[line.method], "\(line.line): \(ended.text)")
                        }
                        self.expectNoSecret(ended, line.line)
                    }
                    await notifier.stop()
                }
            }
            try await group.waitForAll()
        }
    }

    private static func example<Request: RPCRequest>(_ type: Request.Type) -> JSONValue { type.example.result.json }

    /// What a method takes, and no line of the table gives, has no option.
    @Test func everyParameterOfEveryMethodIsInALine() {
        let byHand = Notifier.methods.filter { $0.method != Notifier.Unfollow.method }
        for method in byHand {
            let calls = NotifierCommandLines.all.filter { $0.method == method.method }.map {
                JSONValue.object($0.params)
            }
            #expect(!calls.isEmpty, "\(method.method) has no command")
            expectAllMembers(of: .object(method.schema), in: calls, method.method)
        }
    }

    private func expectAllMembers(of schema: JSONValue, in values: [JSONValue], _ path: String) {
        // Documents are given as they are.
        let documents = [".payload", ".platforms", ".subscription", ".triggers.set."]
        guard !documents.contains(where: path.contains), let properties = schema["properties"]?.object?.members else {
            return
        }
        for property in properties {
            let given = values.compactMap { $0[property.name] }
            #expect(!given.isEmpty, "\(path).\(property.name) is in no line")
            expectAllMembers(of: property.value, in: given, "\(path).\(property.name)")
        }
    }

    @Test func identityComesFromFilesStdinAndTheEnvironment() async throws {
        let folder = try folder()
        let notifier = try await RecordingNotifier()
        let key = try folder.write("key", RecordingNotifier.administratorKey)
        let file = try folder.write("id-token", "masuo\n")
        let lines: [(line: String, environment: [String: String], uid: String?)] = [
            ("badges get --admin-key-file @key", [:], nil), ("badges get", ["HATO_ADMIN_KEY_FILE": key], nil),
            ("badges get --token-file @id-token", [:], "masuo"),
            ("badges get --token-file -", [:], "masuo"), ("badges get", ["HATO_TOKEN": "tara"], "tara"),
            ("badges get --admin-key-file @key --as sazae", [:], "sazae"),
        ]
        for (line, environment, uid) in lines {
            let shell = CommandShell(
                program: "hato-notifier", folder: folder,
                environment: environment.merging(["HATO_NOTIFIER_SERVER": notifier.address]) { $1 })
            let ended = try await shell.run(line, input: line.hasSuffix("-") ? "id-token" : nil)
            #expect(ended.code == 0, "\(line): \(ended.error)")
            #expect(notifier.takeCalls().map(\.uid) == [uid], "\(line) \(file)")
        }
        await notifier.stop()
    }

    /// Behind what reads all of stdin, nothing is left.
    @Test func twoThingsOnStdinAreRefusedByName() async throws {
        let folder = try folder()
        let notifier = try await RecordingNotifier()
        _ = try folder.write("key", RecordingNotifier.administratorKey)
        _ = try folder.write("tokens", "token-1\n")
        let shell = CommandShell(
            program: "hato-notifier", folder: folder, environment: ["HATO_NOTIFIER_SERVER": notifier.address])
        for (line, words) in [
            ("devices register --fcm-token-file - --admin-key-file -", "--admin-key-file and the registration token"),
            ("send-to-device - --device-tokens-file @tokens --admin-key-file -", "--admin-key-file and the payload"),
        ] {
            let ended = try await shell.run(line, input: "key")
            #expect(ended.code == 64 && ended.error.contains("\(words) both read stdin (-)"), "\(ended.error)")
        }
        #expect(notifier.takeCalls().isEmpty)
        await notifier.stop()
    }

    // MARK: Lines for people

    @Test func peopleGetLinesOnATerminal() async throws {
        let folder = try folder()
        let notifier = try await RecordingNotifier()
        let shell = CommandShell(
            program: "hato-notifier", folder: folder,
            environment: ["HATO_NOTIFIER_SERVER": notifier.address, "HATO_TOKEN": "masuo"])
        let preferences = """
            PREFERENCE  VALUE
            time zone   Asia/Tokyo
            quiet       mon,tue,wed,thu,fri 22:00-07:00 hold
            muted       c1 for ever

            """
        #expect(try await shell.shown("preferences get") == preferences)
        #expect(try await shell.shown("preferences set --mute c1") == preferences)
        #expect(try await shell.shown("preferences get --json").hasPrefix(#"{"timeZone":"Asia/Tokyo","quiet":[{"#))
        #expect(try await shell.shown("preferences get --only timeZone") == "Asia/Tokyo\n")
        #expect(try await shell.shown("quick-replies get").hasPrefix("INDEX  TEXT\n    0  了解です\n"))
        #expect(
            try await shell.shown("devices list").hasPrefix("DEVICE                UID  PLATFORM  APP  URL  STATE\n"))
        await notifier.stop()
    }

    // MARK: Wrong lines

    @Test func wrongLinesNameWhatIsWrongAndCallNothing() async throws {
        let folder = try folder()
        let notifier = try await RecordingNotifier()
        let shell = CommandShell(
            program: "hato-notifier", folder: folder,
            environment: [
                "HATO_NOTIFIER_SERVER": notifier.address,
                "HATO_ADMIN_KEY_FILE": try folder.write("key", RecordingNotifier.administratorKey),
            ])
        try await forEach(WrongNotifierLines.local) { try await self.expectWrong($0, in: shell) }
        #expect(notifier.takeCalls().isEmpty)
        await notifier.stop()
    }

    private func expectWrong(_ wrong: WrongNotifierLines.Line, in shell: CommandShell) async throws {
        let ended = try await shell.run(wrong.line)
        #expect(ended.code == wrong.code, "\(wrong.line): \(ended.error)")
        #expect(ended.text.isEmpty, "\(wrong.line): \(ended.text)")
        for words in wrong.words {
            let expected = words.replacing("@", with: shell.folder.path + "/")
            #expect(ended.error.contains(expected), "\(wrong.line): \(ended.error)")
        }
        expectNoSecret(ended, wrong.line)
    }

    @Test func theServiceNamesWhatItRefuses() async throws {
        try await withFirebase { stack, _ in
            let folder = try folder()
            let user = try await stack.newUser()
            _ = try folder.write("id-token", user.idToken)
            let shell = try shell(of: stack, in: folder)
            try await forEach(WrongNotifierLines.refused) { try await self.expectWrong($0, in: shell) }
        }
    }

    func shell(of stack: TestStack, in folder: TemporaryFolder) throws -> CommandShell {
        CommandShell(
            program: "hato-notifier", folder: folder,
            environment: [
                "HATO_NOTIFIER_SERVER": try #require(stack.announcement["notifier"]?.string),
                "HATO_ADMIN_KEY_FILE": try #require(stack.announcement["adminKeyFile"]?.string),
            ])
    }
}
