import HatoModel
import Testing

struct TreeNodeTests {
    private func node(_ json: JSONValue) throws -> TreeNode { try TreeNode(json: json) }

    @Test func childrenAreInKeyOrderHoweverTheyCome() throws {
        let few = try node(["b": 1, "10": 2, "9": 3, "a": 4])
        #expect(few.children?.map(\.key.text) == ["9", "10", "a", "b"])
        let many = try node(.object(JSONObject(uniqueMembers: (0..<100).reversed().map { .init("\($0)", 1) })))
        #expect(many.children?.map(\.key.text) == (0..<100).map { "\($0)" })
    }

    @Test func negativeZeroIsZero() throws {
        #expect(try node(-0.0).export == 0)
        guard case .leaf(.number(let value), _) = try node(-0.0) else { return }
        #expect(value.sign == .plus)
    }

    @Test func errorsNameThePosition() throws {
        let error = #expect(throws: ArgumentError.self) {
            try TreeNode(json: ["ok": ["a": ["b$": 1]]], at: TreePath("/x"))
        }
        #expect(error?.message.contains("\"b$\"") == true)
        #expect(error?.message.contains("/x/ok/a") == true)
        let priority = #expect(throws: ArgumentError.self) { try node(["a": ["b": 1, ".priority": true]]) }
        #expect(priority?.reason == "invalid_priority")
        #expect(priority?.message.contains("/a") == true)
    }

    @Test func depthIsCountedFromTheRoot() throws {
        var value: JSONValue = 1
        for _ in 0..<32 { value = ["a": value] }
        _ = try node(value)
        #expect(throws: ArgumentError.self) { try TreeNode(json: value, at: TreePath("/x")) }
        #expect(throws: ArgumentError.self) { try node(["a": value]) }
    }

    @Test func textsHaveTenMebibytes() throws {
        let text = String(repeating: "x", count: TreeLimits.stringBytesMax)
        _ = try node(.string(text))
        let error = #expect(throws: ArgumentError.self) { try node(["a": .string(text + "x")]) }
        #expect(error?.reason == "string_too_long")
    }

    @Test func textsAreTheirBytes() throws {
        #expect(try node("\u{E9}") != node("e\u{301}"))
        #expect(try node(["\u{E9}": 1, "e\u{301}": 2]).children?.count == 2)
    }

    @Test func serverValuesOfEventsAreRefused() {
        #expect(throws: ArgumentError.self) { try node([".sv": "timestamp"]) }
    }

    @Test func serverValuesAreResolvedWithTheirPosition() throws {
        final class Source: ServerValueSource {
            var asked: [(ServerValue, ServerValueLocation)] = []
            func number(for value: ServerValue, at place: ServerValueLocation) throws -> Double {
                asked.append((value, place))
                return Double(asked.count)
            }
        }
        let source = Source()
        let node = try TreeNode(
            json: [
                "a": ["b": [".sv": "timestamp"]],
                "n": [".value": [".sv": ["increment": 2]], ".priority": [".sv": "timestamp"]],
            ],
            at: TreePath("/x"), serverValues: source)
        #expect(node.export == ["a": ["b": 1], "n": [".value": 2, ".priority": 3]])
        let keys = try ["a", "b", "n"].map { try TreeKey($0) }
        #expect(source.asked.map(\.0) == [.timestamp, .increment(2), .timestamp])
        #expect(
            source.asked.map(\.1) == [
                .init(keys: [keys[0], keys[1]], isPriority: false), .init(keys: [keys[2]], isPriority: false),
                .init(keys: [keys[2]], isPriority: true),
            ])
    }

    @Test func settingFollowsTheRulesOfWrites() throws {
        let start = try node(["a": [".value": 5, ".priority": 1], "b": ["c": 1, ".priority": 2]])
        let one = TreeNode.leaf(.number(1))
        #expect(
            start.setting(one, at: try TreePath("/a/x")).export == [
                "a": ["x": 1, ".priority": 1], "b": ["c": 1, ".priority": 2],
            ])
        #expect(start.setting(.empty, at: try TreePath("/a/x")) == start)
        #expect(start.setting(.empty, at: try TreePath("/b/c")).export == ["a": [".value": 5, ".priority": 1]])
        #expect(start.setting(one, at: try TreePath("/z/y/x")).node(at: try TreePath("/z/y")).export == ["x": 1])
        #expect(start.setting(one, at: try TreePath("/b/.priority")).node(at: try TreePath("/b/.priority")) == one)
        #expect(start.setting(.empty, at: try TreePath("/b/.priority")).priority == nil)
        #expect(start.setting(one, at: try TreePath("/z/.priority")) == start)
    }

    @Test func valuesOfDifferentTypesAreOrdered() throws {
        let ordered: [JSONValue] = [.null, false, true, -2, 0, 1.5, "", "a", "b", "😀", "\u{E000}"]
        for (left, a) in ordered.enumerated() {
            for (right, b) in ordered.enumerated() {
                #expect(
                    ValueOrder.compare(try node(a), try node(b)).signum() == (left - right).signum(), "\(a) and \(b)")
            }
        }
        #expect(ValueOrder.compare(try node(["a": 1]), try node(["b": 2])) == 0)
        #expect(ValueOrder.compare(try node("z"), try node(["b": 2])) < 0)
        #expect(ValueOrder.compare(try node([".value": 1, ".priority": 2]), try node(1)) == 0)
    }
}
