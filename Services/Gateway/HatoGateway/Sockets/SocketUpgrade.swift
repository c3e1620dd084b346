import HatoFirebase
import HatoModel
import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Makes sockets of requests that ask for one at `/.ws`.
struct SocketUpgrade {
    let upgrader: NIOWebSocketServerUpgrader

    init(_ state: LoopState, from address: String) {
        let state = NIOLoopBound(state, eventLoop: state.loop)
        upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: SocketConnection.messageBytesMax,
            shouldUpgrade: { channel, head in
                channel.eventLoop.makeSucceededFuture(head.path == "/.ws" ? HTTPHeaders() : nil)
            },
            upgradePipelineHandler: { channel, head in
                channel.eventLoop.makeCompletedFuture {
                    let host = head.headers.first(name: "host") ?? ""
                    let database = state.value.configuration.namespaces.database(target: head.uri, host: host)
                    let socket = SocketConnection(state.value, database, host: host, from: address)
                    try channel.pipeline.syncOperations.addHandler(SocketPulse(socket), position: .first)
                    try channel.pipeline.syncOperations.addHandler(socket)
                }
            })
    }
}
