import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The library for test suites of other projects: stacks start, are separate from each other, and leave nothing behind.
@Suite(.timeLimit(.minutes(5)))
struct ThrowAwayStack {
    @Test func stackServesRequestsAndIsGoneAfterwards() async throws {
        let (folder, identifier) = try await TestStack.run { stack in
            let health = try await stack.client(.messages, as: .administrator).call(Service.Health())
            #expect(health.service == "messages")
            #expect(health.checks?["store"] == "open")
            #expect(health.checks?["keys"]?.string?.isEmpty == false)
            let user = try await stack.newUser()
            let client = stack.client(.messages, as: .user(idToken: user.idToken))
            let pushed = try await client.call(
                method: "messages.push", params: ["path": "/chats/c1/messages", "value": ["text": "ただいま"]])
            let key = try #require(pushed["key"]?.string)
            let read = try await client.call(
                method: "messages.get", params: ["path": .string("/chats/c1/messages/\(key)/text")])
            #expect(read["value"] == "ただいま")
            let file = try #require(stack.announcement["adminKeyFile"]?.string)
            return ((file as NSString).deletingLastPathComponent, stack.processIdentifier)
        }
        #expect(!FileManager.default.fileExists(atPath: folder))
        #expect(kill(identifier, 0) != 0)
    }

    @Test func twoStacksAreSeparate() async throws {
        let one = try await TestStack.start()
        let other = try await TestStack.start()
        let writer = one.client(.messages, as: .administrator)
        _ = try await writer.call(method: "messages.set", params: ["path": "/a", "value": 1])
        let reader = other.client(.messages, as: .administrator)
        #expect(try await reader.call(method: "messages.get", params: ["path": "/a"])["value"] == .null)
        #expect(one.administratorKey != other.administratorKey)
        await one.stop()
        await other.stop()
    }

    @Test func stackEndsWithItsLastReference() async throws {
        var stack: TestStack? = try await TestStack.start()
        let identifier = try #require(stack?.processIdentifier)
        stack = nil
        try await eventually("the stack has ended") { kill(identifier, 0) != 0 }
    }

    @Test func slowOperationsAreLoggedAsAsked() async throws {
        try await TestStack.run(["--slow-operation-ms", "1", "--slow-operation-paths", "whole"]) { stack in
            var values = JSONObject()
            for number in 0..<20_000 { values.append("k\(number)", .number(Double(number))) }
            _ = try await stack.client(.messages, as: .administrator).call(
                Messages.Set(path: try TreePath("/slow/write"), value: .object(values)))
            try await eventually("a line about it") {
                stack.log.split(separator: "\n").contains {
                    $0.contains("slow operation") && $0.contains("/slow/write")
                }
            }
        }
    }

    @Test func errorOfAWrongSettingHasTheOutputOfTheStack() async throws {
        do {
            _ = try await TestStack.start(["--no-such-setting", "1"])
            Issue.record("it started")
        } catch let error as TestStackError {
            #expect("\(error)".contains("no-such-setting"))
        }
    }
}
