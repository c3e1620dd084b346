import HatoModel
import HatoRPC
import HatoTesting

/// Firebase's protocols beside the native one, at the same work: the services and the gateway are processes of their
/// own, and windows of both take turns.
struct GatewayBench: Sendable {
    private static let room = "large"
    private static let listeners = 100
    private static let postsPerSecond = 50
    private static let burstPosts = 2_000

    /// Clients of the gateway and clients of the service, at the same work.
    private struct Pair {
        var name: String
        var unit: String
        var shape: LoadShape
        var ratioMin: Double
        var native: RawLoad
        var framed: FramedLoad
    }

    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let settings = settings
        let folder = try PushFolder()
        defer { folder.remove() }
        table.rows += try await TestStack.run([]) { stack in
            let gateway = try ServedProgram.gateway(before: stack, folder)
            var table = Table()
            try await requests(stack, gateway, &table)
            try await events(stack, gateway, &table)
            return table
        }.rows
        table.rows += try await TestStack.run([]) { stack in
            let messages = try await ServedProgram.messages(of: stack, folder)
            return try await GatewayMemoryBench(stack: stack, messages: messages, folder: folder).rows()
        }.rows
    }

    // MARK: Requests

    private func requests(_ stack: TestStack, _ gateway: ServedProgram, _ table: inout Table) async throws {
        try await ReadBench(settings: settings, stack: stack).fill(Self.room)
        let token = try await stack.newUser().idToken
        let (native, web, settings) = (stack.configuration(.messages).port, gateway.port, settings)
        let rows = try await Blocking.run {
            // Each opens its connections when it runs: none waits idle for the ones before.
            var rows = try Self.inTurn(try Self.restPosts(native, web, token), settings)
            rows += try Self.inTurn(try Self.restReads(native, web, token), settings)
            for (shape, ratioMin) in [(LoadShape(64, 1), 0.55), (LoadShape(4, 64), 0.5)] {
                rows += try Self.inTurn(try Self.socketPosts(native, web, token, shape, ratioMin: ratioMin), settings)
            }
            return rows
        }
        for row in rows { table.add(row) }
        try await refreshes(stack, gateway, &table)
    }

    private static func restPosts(_ native: Int, _ web: Int, _ token: String) throws -> Pair {
        let requests = (0..<1_024).map {
            FirebaseRequests.rest("POST", "/chats/bench/messages.json?auth=\(token)", ChatRequests.message($0).encoded)
        }
        return Pair(
            name: "REST posts, each with its token", unit: "posts/s", shape: LoadShape(64, 1), ratioMin: 0.5,
            native: try nativePosts(native, token, LoadShape(64, 1)),
            framed: try FramedLoad(try restSockets(web, 64), depth: 1, requests: requests, .http))
    }

    private static func restReads(_ native: Int, _ web: Int, _ token: String) throws -> Pair {
        let target = "/chats/\(room)/messages.json?orderBy=%22date%22&limitToLast=1&auth=\(token)"
        let line = ChatRequests.line(Messages.Get.method, ChatRequests.newest(1, room: room).bytes)
        return Pair(
            name: "REST newest 1, each with its token", unit: "reads/s", shape: LoadShape(64, 1), ratioMin: 0.4,
            native: try RawLoad(at: native, as: token, LoadShape(64, 1), requests: [line]),
            framed: try FramedLoad(
                try restSockets(web, 64), depth: 1, requests: [FirebaseRequests.rest("GET", target)], .http))
    }

    private static func socketPosts(
        _ native: Int, _ web: Int, _ token: String, _ shape: LoadShape, ratioMin: Double
    ) throws -> Pair {
        let sockets = try (0..<shape.clients).map { _ in try GatewaySockets.webSocket(port: web, as: token) }
        let requests = (0..<1_024).map { FirebaseRequests.put("sockets\(shape.clients)", ChatRequests.message($0)) }
        return Pair(
            name: "WebSocket posts", unit: "posts/s", shape: shape, ratioMin: ratioMin,
            native: try nativePosts(native, token, shape),
            framed: try FramedLoad(sockets, depth: shape.depth, requests: requests, .webSocket))
    }

    private static func restSockets(_ port: Int, _ count: Int) throws -> [RawSocket] {
        try (0..<count).map { _ in try RawSocket(port: port) }
    }

    private static func nativePosts(_ port: Int, _ token: String, _ shape: LoadShape) throws -> RawLoad {
        let lines = ChatRequests.pushesIntoOneRoom.map { ChatRequests.line(Messages.Push.method, $0.bytes) }
        return try RawLoad(at: port, as: token, shape, requests: lines)
    }

    private static func inTurn(_ pair: Pair, _ settings: BenchSettings) throws -> [Table.Row] {
        var pair = pair
        defer {
            pair.native.close()
            pair.framed.close()
        }
        Progress.say("  \(pair.name): \(pair.shape)")
        try pair.native.warmUp()
        _ = try pair.framed.window(seconds: 0.5)
        var (native, framed): ([Window], [Window]) = ([], [])
        for number in 0..<settings.windows {
            // Neither always follows the other.
            let isFirst = number.isMultiple(of: 2)
            if isFirst { native.append(try pair.native.window(seconds: settings.seconds)) }
            framed.append(try pair.framed.window(seconds: settings.seconds))
            if !isFirst { native.append(try pair.native.window(seconds: settings.seconds)) }
        }
        return rows("\(pair.name): \(pair.shape)", native, framed, pair.unit, ratioMin: pair.ratioMin)
    }

    private static func rows(
        _ what: String, _ native: [Window], _ framed: [Window], _ unit: String, ratioMin: Double
    ) -> [Table.Row] {
        var row = Table.Row("gateway: \(what)", Window(mediansOf: framed), unit)
        row.ratio = (framed.map(\.perSecond).ratio(to: native.map(\.perSecond)), "native")
        row.goals = [Goal(.ratio, .atLeast(ratioMin))]
        return [Table.Row("native, in turn: \(what)", Window(mediansOf: native), unit), row]
    }

    private func refreshes(_ stack: TestStack, _ gateway: ServedProgram, _ table: inout Table) async throws {
        var sessions: [Auth.Session] = []
        for _ in 0..<128 { sessions.append(try await stack.newUser()) }
        let (native, web, settings, all) = (stack.configuration(.auth).port, gateway.port, settings, sessions)
        let rows = try await Blocking.run {
            var direct = try RefreshLoad(port: native, Array(all[..<64]))
            var load = try RefreshLoad(port: web, Array(all[64...]), over: .http)
            defer {
                direct.close()
                load.close()
            }
            _ = try direct.window(seconds: 0.5)
            _ = try load.window(seconds: 0.5)
            var (nativeWindows, framed): ([Window], [Window]) = ([], [])
            for _ in 0..<settings.windows {
                nativeWindows.append(try direct.window(seconds: settings.seconds))
                framed.append(try load.window(seconds: settings.seconds))
            }
            return Self.rows(
                "token refreshes: \(LoadShape(64, 1))", nativeWindows, framed, "/s", ratioMin: 0.5)
        }
        for row in rows { table.add(row) }
    }

    // MARK: Events

    private func events(_ stack: TestStack, _ gateway: ServedProgram, _ table: inout Table) async throws {
        let token = try await stack.newUser().idToken
        let (native, web) = (stack.configuration(.messages).port, gateway.port)
        let count = Self.listeners
        let (plain, sockets, streams) = try await Blocking.run {
            (
                try (0..<count).map { _ in
                    let socket = try RawSocket(port: native, signedInWith: token)
                    try socket.openListener(on: "native")
                    return socket
                },
                try (0..<count).map { _ in try GatewaySockets.listener(port: web, as: token, room: "sockets") },
                try (0..<count).map { _ in try GatewaySockets.stream(port: web, as: token, room: "streams") }
            )
        }
        defer { for socket in plain + sockets + streams { socket.close() } }
        let writer = stack.client(.messages, as: .user(idToken: token))
        let rooms = [("native", plain), ("sockets", sockets), ("streams", streams)].map { name, sockets in
            (fan: FanOut(room: name, postsPerSecond: Self.postsPerSecond, writer: writer), sockets: sockets)
        }
        let posts = max(1, Int(settings.seconds * Double(Self.postsPerSecond)))
        var paced: [[Window]] = rooms.map { _ in [] }
        var bursts: [[Window]] = rooms.map { _ in [] }
        for _ in 0..<settings.windows {
            for (index, room) in rooms.enumerated() {
                paced[index].append(try await room.fan.paced(posts, to: room.sockets))
                bursts[index].append(try await room.fan.burst(of: Self.burstPosts, to: room.sockets))
            }
        }
        await writer.close()
        report(paced.map { Window(mediansOf: $0) }, bursts.map { Window(mediansOf: $0) }, &table)
    }

    private func report(_ paced: [Window], _ bursts: [Window], _ table: inout Table) {
        let load = "\(Self.postsPerSecond) posts/s to \(Self.listeners) listeners"
        let late: [Goal] = [
            Goal(.p50, .atMost(paced[0].p50 + 500)), Goal(.p99, .atMost(paced[0].p99 + 3_000)),
        ]
        for (index, name) in ["native, in turn", "gateway, WebSocket", "gateway, event streams"].enumerated() {
            table.add("\(name): \(load)", paced[index], "deliveries/s", goals: index == 1 ? late : [])
            table.add(
                "\(name): a burst of \(Figure.text(Double(Self.burstPosts))) posts to \(Self.listeners) listeners",
                bursts[index], "deliveries/s", goals: index == 0 ? [] : [Goal(.value, .atLeast(50_000))])
        }
    }
}
