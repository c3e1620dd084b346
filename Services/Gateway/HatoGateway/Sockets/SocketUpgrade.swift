import HatoFirebase
import HatoModel
import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Makes sockets of requests that ask for one at `/.ws`.
struct SocketUpgrade {
    let upgrader: NIOWebSocketServerUpgrader

    init(_ state: LoopState, from peer: Peer) {
        let state = NIOLoopBound(state, eventLoop: state.loop)
        upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: SocketConnection.messageBytesMax,
            shouldUpgrade: { channel, head in
                // What an emulator or the gate refuses, `HTTPConnection` responds to.
                guard head.path == "/.ws", state.value.problem(head) == nil else {
                    return channel.eventLoop.makeSucceededFuture(nil)
                }
                let gate = state.value.gate
                let client = gate.client(of: head, peer)
                guard gate.requestBegan(head, from: client, peer) == nil else {
                    return channel.eventLoop.makeSucceededFuture(nil)
                }
                channel.closeFuture.whenComplete { _ in gate.requestEnded(from: client, peer) }
                return channel.eventLoop.makeSucceededFuture(HTTPHeaders())
            },
            upgradePipelineHandler: { channel, head in
                channel.eventLoop.makeCompletedFuture {
                    let host = head.headers.first(name: "host") ?? ""
                    let database = state.value.configuration.namespaces.database(target: head.uri, host: host)
                    let socket = SocketConnection(
                        state.value, database, host: host, from: state.value.gate.client(of: head, peer))
                    try channel.pipeline.syncOperations.addHandler(SocketPulse(socket), position: .first)
                    try channel.pipeline.syncOperations.addHandler(socket)
                }
            })
    }
}
