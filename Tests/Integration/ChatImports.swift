import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `hato-messages` on the command line: import of chat logs, export and import of trees, exit codes.
@Suite(.timeLimit(.minutes(5)))
struct ChatImports {
    @Test func chatLogIsImportedOnceHoweverOftenItIs() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let file = try folder.write(
                "chats.jsonl",
                """
                {"room":"r.1","at":1700000000000,"sender":"[a]","text":"one"}
                {"room":"r.1","at":1700000000000,"sender":"b","text":"two"}
                {"room":"r.1","at":1700000000001,"sender":"[a]","text":"three"}
                """)
            let first = try await command(["import-chats", file, "--json"], on: stack)
            #expect(first.code == 0, "\(first.error)")
            #expect(first.output["messages"] == 3)
            #expect(first.output["alreadyThere"] == 0)
            #expect(first.output["rooms"] == 1)
            #expect(first.output["senders"] == 2)
            let client = stack.client(.messages, as: .administrator)
            let version = try await client.call(Messages.Stats()).version
            let again = try await command(["import-chats", file, "--json"], on: stack)
            #expect(again.output["messages"] == 3)
            #expect(again.output["alreadyThere"] == 3, "\(again.error)")
            #expect(try await client.call(Messages.Stats()).version == version)

            let query = TreeQuery(order: .child(try TreePath("date")))
            let read = try await client.call(Messages.Get(path: try TreePath("/chats/r%2E1/messages"), query: query))
            let messages = read.value.object?.members.map(\.value) ?? []
            #expect(messages.map { $0["text"] } == ["one", "two", "three"])
            #expect(
                messages.first == [
                    "date": 1_700_000_000_000, "senderId": "%5Ba%5D", "senderName": "[a]", "text": "one",
                ])
            #expect(read.keys?.allSatisfy { $0.hasPrefix("-NjEtLV-") || $0.hasPrefix("-NjEtLV0") } == true)
            #expect(try await client.call(Messages.Get(path: try TreePath("/users/%5Ba%5D/name"))).value == "[a]")
        }
    }

    /// A log that has grown since it was imported, in more than one batch.
    @Test func existingMessagesAreCountedSeparately() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            func lines(_ range: Range<Int>, of room: String) -> String {
                let ends = range.map { #""at":\#(1_700_000_000_000 + $0),"sender":"a","text":"\#($0)"}"# }
                return ends.map { #"{"room":"\#(room)",\#($0)"# + "\n" }.joined()
            }
            let first = try await command(
                ["import-chats", try folder.write("first.jsonl", lines(0..<600, of: "old")), "--json"], on: stack)
            #expect(first.output["alreadyThere"] == 0, "\(first.error)")
            let longer = lines(300..<700, of: "old") + lines(0..<200, of: "new")
            let second = try await command(
                ["import-chats", try folder.write("second.jsonl", longer), "--json"], on: stack)
            #expect(second.output["messages"] == 600)
            #expect(second.output["alreadyThere"] == 300, "\(second.error)")
            let third = try await command(
                ["import-chats", try folder.write("third.jsonl", longer), "--json"], on: stack)
            #expect(third.output["alreadyThere"] == 600, "\(third.error)")
        }
    }

    /// As Firebase exports it; plain, gzipped, and from stdin.
    @Test func jsonTreeIsImportedAndComesOutAsItWas() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let messages = (0..<2_500).map {
                #""m\#($0 + 10_000)":{".priority":\#($0),"text":"é \#($0)","seen":[true,null,1.5]}"#
            }
            let title = #"{".value":"t",".priority":"p"}"#
            let chat = #"{"title":\#(title),"messages":{\#(messages.joined(separator: ","))}}"#
            let tree = #"{"chats":{"c":\#(chat)},"n":-0.5}"#
            let file = try folder.write("tree.json", tree)
            let first = try await command(["import", file, "--json"], on: stack)
            #expect(first.code == 0, "\(first.error)")
            #expect(first.output["rows"] == 10_003)
            let client = stack.client(.messages, as: .administrator)
            let meant = try TreeNode(json: JSONParser.parse(tree)).export
            #expect(try await client.call(Messages.Get(path: .root, form: .export)).value == meant)

            try folder.run("/bin/gzip", [file])
            let zipped = try await command(["import", file + ".gz", "--path", "/zipped", "--json"], on: stack)
            #expect(zipped.code == 0, "\(zipped.error)")
            #expect(try await client.call(Messages.Get(path: try TreePath("/zipped"), form: .export)).value == meant)

            let exported = try await command(["export", "/zipped"], on: stack)
            let rows = try folder.write("rows", exported.text)
            var streams = Executable.Streams()
            streams.input = rows
            let again = try await command(["import", "-", "--path", "/again", "--json"], on: stack, streams: streams)
            #expect(again.code == 0, "\(again.error)")
            #expect(try await command(["export", "/again"], on: stack).text == exported.text)
            await client.close()
        }
    }

    @Test func wrongTreeIsReportedBeforeAnyWrite() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let rest = (0..<3_000).map { #""k\#($0)":1"# }.joined(separator: ",")
            for (name, end, words) in [
                ("key", #""a.b":1}"#, #"no tree. At "/": The key "a.b" contains ".""#),
                ("cut", #""a":1"#, "not valid JSON: the text ends in the middle of a value"),
                ("mix", #""a":{".value":1,"b":2}}"#, #"At "/a""#),
                ("twice", #""k7":{"x":1}}"#, #"no tree. At "/": the key "k7" occurs twice in one object"#),
            ] {
                let file = try folder.write("\(name).json", "{\(rest),\(end)")
                let refused = try await command(["import", file], on: stack)
                #expect(refused.code == 74)
                #expect(refused.error.contains(words), "\(refused.error)")
            }
            let lines = try folder.write("lines", "[\"/a\",1]\n[\"/b\",{}]\n")
            let refused = try await command(["import", lines], on: stack)
            #expect(refused.error.contains("line 2 of"), "\(refused.error)")
            // Farther apart than a page.
            let between = (0..<3_000).map { "[\"/k\($0)\",1]\n" }.joined()
            for (name, first, last, words) in [
                ("again", "/a", "/a", #"has "/a" a second time"#),
                ("below", "/a", "/a/b/c", #"has "/a/b/c", which is below the value of "/a""#),
                ("above", "/a/b/c", "a", #"has a value for "/a"; earlier rows are below it"#),
            ] {
                let file = try folder.write(name, "[\"\(first)\",1]\n\(between)[\"\(last)\",2]\n")
                let refused = try await command(["import", file], on: stack)
                #expect(refused.code == 74)
                #expect(refused.error.contains("line 3002 of \(file) \(words)"), "\(refused.error)")
            }
            let client = stack.client(.messages, as: .administrator)
            #expect(try await client.call(Messages.Get(path: .root)).value == .null)
            await client.close()
        }
    }

    @Test func badLineIsNamedAndSkippedOnlyWhenAsked() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let file = try folder.write(
                "chats.jsonl",
                """
                {"room":"r","at":1700000000000,"sender":"a","text":"one"}
                {"room":"r","at":"yesterday","sender":"a","text":"two"}
                {"room":"r","at":1700000000002,"sender":"a","text":"three"}
                """)
            let refused = try await command(["import-chats", file], on: stack)
            #expect(refused.code == 74)
            #expect(refused.error.contains("line 2"))
            let skipped = try await command(["import-chats", file, "--skip-bad-lines", "--json"], on: stack)
            #expect(skipped.code == 0)
            #expect(skipped.error.contains("line 2"))
            #expect(skipped.output["messages"] == 2)
            #expect(skipped.output["skippedLines"] == 1)
        }
    }

    @Test func lineBeyondTheTreesLimitsIsNamedAndSkipped() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            func line(_ text: String) -> String { #"{"room":"r","at":1700000000000,"sender":"a","text":"\#(text)"}"# }
            let tooLong = [(10 << 20) + 1, 17 << 20].map { String(repeating: "x", count: $0) }
            let texts = ["one"] + tooLong + ["two"]
            let file = try folder.write("chats.jsonl", texts.map(line).joined(separator: "\n"))
            let refused = try await command(["import-chats", file], on: stack)
            #expect(refused.code == 74)
            #expect(refused.error.contains("line 2"), "\(refused.error)")
            let skipped = try await command(
                ["import-chats", "-", "--skip-bad-lines", "--json"], on: stack, streams: .init(input: file))
            #expect(skipped.code == 0, "\(skipped.error)")
            #expect(skipped.error.contains("line 2 of stdin has a \"text\" that is longer"), "\(skipped.error)")
            #expect(skipped.error.contains("line 3 of stdin is longer"), "\(skipped.error)")
            #expect(skipped.output["messages"] == 2)
            #expect(skipped.output["skippedLines"] == 2)
        }
    }

    @Test func exportReportsAFailingOutput() async throws {
        try await TestStack.run { stack in
            #expect(try await command(["set", "/a", "1"], on: stack).code == 0)
            let full = try await command(["export"], on: stack, streams: .init(output: "/dev/full"))
            #expect(full.code == 74)
            #expect(full.error.contains("cannot write: No space left on device"), "\(full.error)")
        }
    }

    @Test func sampleIsImportedGzippedToo() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let sample = try sample()
            let text = try String(contentsOf: sample, encoding: .utf8)
            let lines = text.split(separator: "\n").count
            let copy = try folder.write("sample.jsonl", text)
            try folder.run("/bin/gzip", [copy])
            let imported = try await command(["import-chats", copy + ".gz", "--json"], on: stack)
            #expect(imported.code == 0, "\(imported.error)")
            #expect(imported.output["messages"]?.number == Double(lines))
        }
    }

    @Test func exportedTreeIsImportedAgain() async throws {
        try await TestStack.run { stack in
            let folder = try TemporaryFolder()
            let client = stack.client(.messages, as: .administrator)
            let tree: JSONValue = ["a": ["b": [".value": 1, ".priority": 2], "c": "鳩"], "d": true]
            _ = try await client.call(Messages.Set(path: try TreePath("/from"), value: tree))
            let exported = try await command(["export", "/from", "--page-size", "2"], on: stack)
            #expect(exported.code == 0, "\(exported.error)")
            let rows = try folder.write("rows.jsonl", exported.text)
            let whole = try folder.write("tree.json", String(decoding: tree.encoded, as: UTF8.self))
            for (file, input, path) in [(rows, rows, "/rows"), ("-", rows, "/stdin"), (whole, whole, "/tree")] {
                let imported = try await command(
                    ["import", file, "--path", path], on: stack, streams: .init(input: input))
                #expect(imported.code == 0, "\(imported.error)")
                let copy = try await client.call(Messages.Get(path: try TreePath(path), form: .export)).value
                #expect(copy == tree)
            }
        }
    }

    @Test func commandsEndWithTheirCodes() async throws {
        try await TestStack.run { stack in
            #expect(try await command(["set", "/a", #""text""#], on: stack).code == 0)
            #expect(try await command(["get", "/a", "--only", "value"], on: stack).text == "text\n")
            #expect(try await command(["set", "/a", "text"], on: stack).code == 64)
            #expect(try await command(["get", "/a.b"], on: stack).code == 64)
            let noIndex = try await command(["query", "/a", "--order-by", "x"], on: stack)
            #expect(noIndex.code == 1)
            #expect(noIndex.error.contains(#"add ".indexOn": "x""#))
            #expect(try await command(["get", "/a"], on: stack, asNobody: true).code == 77)
            let listened = try await command(["listen", "/a", "--max-events", "1"], on: stack)
            #expect(listened.output["params"]?["events"]?.array?.first?["data"] == "text")
            #expect(try await command(["set", "/b", "1", "--only", "etga"], on: stack).code == 64)
            #expect(try await command(["get", "/b", "--only", "value"], on: stack).text == "null\n")
            let asked = try await command(["databases", "drop", "default"], on: stack)
            #expect(asked.code == 64)
            #expect(asked.error.contains("--yes"))
            #expect(try await command(["get", "/a", "--only", "value"], on: stack).text == "text\n")
            #expect(try await command(["databases", "drop", "default", "--yes"], on: stack).code == 0)
        }
    }

    // MARK: Running commands

    private func command(
        _ arguments: [String], on stack: TestStack, asNobody: Bool = false,
        streams: Executable.Streams = Executable.Streams()
    ) async throws -> Executable.Ended {
        var environment = ["HATO_MESSAGES_SERVER": stack.announcement["messages"]?.string ?? ""]
        if !asNobody { environment["HATO_ADMIN_KEY_FILE"] = stack.announcement["adminKeyFile"]?.string }
        return try await Executable.run("hato-messages", arguments, environment, streams: streams)
    }

    private func sample() throws -> URL {
        var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        for _ in 0..<2 { folder.deleteLastPathComponent() }
        return folder.appending(path: "Services/Messages/hato-messages/Samples/irc-sample.jsonl")
    }
}
