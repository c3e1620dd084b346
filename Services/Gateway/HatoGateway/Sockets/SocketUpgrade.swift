import HatoFirebase
import NIOCore
import NIOHTTP1
import NIOWebSocket

/// What a request for a WebSocket may ask for, by its path.
enum SocketTarget: Hashable {
    /// `/.ws`: a session of Firebase's SDKs.
    case session
    /// `/rpc/NAME`: a service, in its own protocol.
    case service(String)

    /// Nil: no socket is there.
    init?(path: Substring) {
        if path == "/.ws" {
            self = .session
        } else if path.hasPrefix("/rpc/") {
            self = .service(String(path.dropFirst(5)))
        } else {
            return nil
        }
    }

    /// The response to a request that asks for no socket there, or in a wrong way.
    func refusal(_ head: HTTPRequestHead, _ links: ServiceLinks) -> HTTPResponse {
        if case .service(let name) = self, links[name[...]] == nil {
            return .text(.notFound, "The services are auth, messages and notifier, e.g. /rpc/messages.\n")
        }
        var response = HTTPResponse.text(.badRequest, "This address takes WebSockets only (RFC 6455).\n")
        let versions = head.headers[canonicalForm: "sec-websocket-version"]
        if head.asksForSocket, versions != ["13"] {
            response = .text(.upgradeRequired, "The version of the WebSocket must be 13 (RFC 6455).\n")
            response.headers.add(name: "Upgrade", value: "websocket")
            response.headers.add(name: "Sec-WebSocket-Version", value: "13")
        }
        return response
    }
}

/// Makes sockets of requests that ask for one where there is one.
struct SocketUpgrade {
    let upgrader: NIOWebSocketServerUpgrader

    /// - Parameter output: of the connection.
    init(_ state: LoopState, from peer: Peer, _ output: UntakenOutput) {
        let output = NIOLoopBound(output, eventLoop: state.loop)
        // A message may be one frame.
        let bytesMax = state.configuration.limits.polls.messageBytesMax
        let state = NIOLoopBound(state, eventLoop: state.loop)
        upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: bytesMax, automaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                let state = state.value
                // What an emulator or the gate refuses, `HTTPConnection` responds to.
                guard head.hasSocketKey, Self.takes(head, state.upstream.links), state.problem(head) == nil else {
                    return channel.eventLoop.makeSucceededFuture(nil)
                }
                let gate = state.gate
                let client = gate.client(of: head, peer)
                guard gate.requestBegan(head, from: client, peer) == nil else {
                    return channel.eventLoop.makeSucceededFuture(nil)
                }
                channel.closeFuture.whenComplete { _ in gate.requestEnded(from: client, peer) }
                return channel.eventLoop.makeSucceededFuture(HTTPHeaders())
            },
            upgradePipelineHandler: { channel, head in
                channel.eventLoop.makeCompletedFuture {
                    let client = state.value.gate.client(of: head, peer)
                    output.value.belongs(to: client)
                    try Self.setUp(channel, head, state.value, output.value)
                }
            })
    }

    private static func takes(_ head: HTTPRequestHead, _ links: ServiceLinks) -> Bool {
        switch SocketTarget(path: head.path) {
        case .session?: true
        case .service(let name)?: links[name[...]] != nil
        case nil: false
        }
    }

    private static func setUp(
        _ channel: any Channel, _ head: HTTPRequestHead, _ state: LoopState, _ output: UntakenOutput
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        // Below it there may be TLS.
        let decoder = try pipeline.handler(type: ByteToMessageHandler<WebSocketFrameDecoder>.self)
        if case .service(let name)? = SocketTarget(path: head.path), let link = state.upstream.links[name[...]] {
            let traffic = NativeTraffic(head, from: output.address, to: name, state.metrics)
            let socket = NativeSocket(state, link, traffic, output)
            try pipeline.addHandler(SocketPulse(socket), position: .before(decoder))
            try pipeline.addHandlers([SocketPongs(), socket])
            return
        }
        let host = head.headers.first(name: "host") ?? ""
        let client = SessionClient(
            database: state.configuration.namespaces.database(target: head.uri, host: host), host: host,
            address: output.address)
        let parameters = SessionParameters(target: head.uri)
        state.end(former: parameters.former)
        let owner: any SocketOwner =
            parameters.takenOver.map { SwitchedSocket(state, $0, host: host) } ?? SocketSession(state, client)
        let socket = SocketConnection(state, owner, head, output)
        try pipeline.addHandler(SocketPulse(socket), position: .before(decoder))
        try pipeline.addHandlers([SocketPongs(), socket])
    }
}
