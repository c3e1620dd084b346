import HatoModel
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// Values take many times the bytes of their text: what connections hold of them is counted and bounded.
struct ValueMemoryTests {
    /// 30,000 bytes whose values take some 700,000.
    private static let value = "[" + String(repeating: "[1],", count: 7_500) + "1]"

    private func line(_ value: String, id: Int = 1) -> ByteBuffer {
        ByteBuffer(
            string:
                "{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"check.store\",\"params\":{\"value\":\(value)}}\n")
    }

    @Test func linesWaitUntilThereIsMemoryForTheirValues() throws {
        let world = LargeReadTests.World {
            $0.processBytesInFlightMax = 20_000_000
            $0.clientBytesInFlightMax = 4_000_000
        }
        let hostile = try (0..<100).map { _ in try world.connect("192.0.2.1") }
        for peer in hostile {
            for _ in 0..<2 { try peer.channel.writeInbound(line(Self.value)) }
            peer.channel.embeddedEventLoop.run()
        }
        let started = world.stored.current.count
        #expect(started > 3 && started < 12)
        let other = try world.connect("192.0.2.2")
        try other.channel.writeInbound(line(Self.value))
        try hostile[50].channel.writeInbound(line("1"))
        world.loop.run()
        #expect(world.stored.current.count == started + 1, "another client finds memory")
        #expect(respond(in: world, to: hostile, and: other) == 202)
    }

    /// An error without an id ends a connection that several clients share.
    @Test func idIsFoundInTheBeginningOfALine() {
        func id(_ text: String, first count: Int = .max) -> String? {
            let bytes = Array(text.utf8)
            return EnvelopeReader.id(in: bytes.span.extracting(first: count), RPCLimits())
        }
        let text = #"{"jsonrpc":"2.0","id":1234,"method":"check.store","params":{"value":["#
        #expect(id(text) == "1234")
        #expect(id(#"{"params":{"id":1},"id":"a","method":"x"}"#) == #""a""#)
        #expect(id(#"{"params":{"id":1},"x":2}"#) == nil)
        #expect(id("[\(text)]}}]") == nil)
        // A number that is cut off is none.
        for count in 0...text.utf8.count {
            let isThere = count > #"{"jsonrpc":"2.0","id":1234"#.utf8.count
            #expect(id(text, first: count) == (isThere ? "1234" : nil))
        }
    }

    /// Responds to all requests and closes all connections, which then hold nothing. Returns the number of requests.
    private func respond(
        in world: LargeReadTests.World, to peers: [LargeReadTests.Peer], and other: LargeReadTests.Peer
    ) -> Int {
        var count = 0
        while let reply = world.stored.current.last {
            world.stored.change { $0.removeLast() }
            reply.succeed(.init(value: nil))
            count += 1
            world.loop.run()
            for peer in peers { peer.take() }
        }
        for peer in peers + [other] { peer.close() }
        #expect(world.state.budget.usedBytes == 0)
        return count
    }

    @Test func smallLinesAreReadAlthoughTooMuchIsHeld() throws {
        let world = LargeReadTests.World { $0.processBytesInFlightMax = 500_000 }
        let (holder, other) = (try world.connect("192.0.2.1"), try world.connect("192.0.2.2"))
        for _ in 0..<2 { try holder.channel.writeInbound(line(Self.value)) }
        #expect(world.stored.current.count == 0, "more than one line may take")
        let small = "[" + String(repeating: "[1],", count: 2_000) + "1]"
        for _ in 0..<3 { try holder.channel.writeInbound(line(small)) }
        try other.channel.writeInbound(line(small))
        world.loop.run()
        let started = world.stored.current.count
        try other.channel.writeInbound(line("1"))
        world.loop.run()
        #expect(world.stored.current.count == started, "behind the line before it")
        let last = try world.connect("192.0.2.3")
        try last.channel.writeInbound(line("1"))
        world.loop.run()
        #expect(world.stored.current.count == started + 1)
    }

    /// Lines of less than 2 KiB whose values take some 45,000 bytes, as many as one read brings.
    @Test func shortLinesWithManyValuesWaitForMemory() throws {
        let world = LargeReadTests.World {
            $0.processBytesInFlightMax = 40_000_000
            $0.clientBytesInFlightMax = 10_000_000
        }
        let value = "[" + String(repeating: "[1],", count: 480) + "1]"
        let hostile = try (0..<200).map { _ in try world.connect("192.0.2.1") }
        for peer in hostile {
            var lines = ByteBuffer()
            for _ in 0..<30 { lines.writeImmutableBuffer(line(value)) }
            try peer.channel.writeInbound(lines)
        }
        world.loop.run()
        // What was read of each connection, and the share.
        #expect(world.state.budget.usedBytes < 10_000_000 + 200 * 72_000)
        let other = try world.connect("192.0.2.2")
        try other.channel.writeInbound(line("1"))
        world.loop.run()
        #expect(respond(in: world, to: hostile, and: other) == 6_001)
    }

    @Test func valuesBeyondWhatALineMayTakeAreRefused() throws {
        let world = LargeReadTests.World { $0.processBytesInFlightMax = 500_000 }
        let peer = try world.connect("192.0.2.1")
        try peer.channel.writeInbound(line(Self.value))
        peer.take()
        let refused = try JSONParser.parse(Array(peer.socket.taken))
        #expect(refused["error"]?["data"]?["reason"] == "too_many_values")
        #expect(refused["id"] == 1, "others may have requests on the same connection")
        #expect(peer.channel.isActive)
        #expect(world.state.budget.usedBytes == 0)
    }
}
