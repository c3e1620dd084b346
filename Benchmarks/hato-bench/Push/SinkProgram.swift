import Foundation
import HatoModel
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL

/// `hato-bench sink apns CERTIFICATE KEY`, `hato-bench sink webhooks`: the receiver of pushes, in a process of its own,
/// so that its processor time is not the notifier's.
///
/// It writes a line of JSON with its port when it is ready, and one for each command on a line of its standard input;
/// it ends with that input.
struct SinkProgram {
    private let log = SinkLog()

    static func run(_ arguments: [String]) async throws {
        let program = SinkProgram()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let channel: any Channel
        switch (arguments.first, arguments.count) {
        case ("apns", 3): channel = try await program.apns(group, certificate: arguments[1], key: arguments[2])
        case ("webhooks", 1): channel = try await program.webhooks(group)
        default: throw BenchError("sink takes: apns CERTIFICATE KEY, or webhooks")
        }
        say(["ready": true, "port": .number(Double(channel.localAddress?.port ?? 0))])
        try await Blocking.run {
            while let line = readLine() { say(try program.response(to: line)) }
        }
        try await channel.close()
        try await group.shutdownGracefully()
    }

    // MARK: Serving

    private func apns(
        _ group: MultiThreadedEventLoopGroup, certificate: String, key: String
    ) async throws -> any Channel {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
        tls.applicationProtocols = ["h2"]
        let (context, log) = (try NIOSSLContext(configuration: tls), log)
        return try await bootstrap(group) { pipeline in
            try pipeline.addHandlers(
                NIOSSLServerHandler(context: context),
                NIOHTTP2Handler(
                    mode: .server, connectionConfiguration: APNsSinkConnection.configuration,
                    streamConfiguration: APNsSinkConnection.streams),
                APNsSinkConnection(log))
        }
    }

    private func webhooks(_ group: MultiThreadedEventLoopGroup) async throws -> any Channel {
        let log = log
        return try await bootstrap(group) { pipeline in
            try pipeline.configureHTTPServerPipeline()
            try pipeline.addHandler(WebhookSinkConnection(log))
        }
    }

    private func bootstrap(
        _ group: MultiThreadedEventLoopGroup,
        _ initialize: @escaping @Sendable (ChannelPipeline.SynchronousOperations) throws -> Void
    ) async throws -> any Channel {
        try await ServerBootstrap(group: group)
            .serverChannelOption(ChannelOptions.backlog, value: 1_024)
            .childChannelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { connection in
                connection.eventLoop.makeCompletedFuture { try initialize(connection.pipeline.syncOperations) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    // MARK: Commands

    private func response(to line: String) throws -> JSONValue {
        let words = line.split(separator: " ").map(String.init)
        let numbers = words.dropFirst().compactMap { Double($0) }
        switch (words.first, numbers.count) {
        case ("clear", 0): log.clear()
        case ("silence", 0): log.respond(after: nil)
        case ("respond", 1): log.respond(after: numbers[0])
        case ("count", 2):
            let found = log.count(atLeast: Int(numbers[0]), within: numbers[1])
            return [
                "count": .number(Double(found.count)), "repeated": .number(Double(found.repeated)),
                "last": .number(Double(found.last)),
            ]
        case ("arrivals", 1):
            return ["arrivals": .array(log.arrivals(0..<Int(numbers[0])).map { .number(Double($0)) })]
        case ("body", 0): return ["body": .string(String(decoding: log.body, as: UTF8.self))]
        default: throw BenchError("the sink has no command \(line)")
        }
        return [:]
    }

    private static func say(_ value: JSONValue) {
        FileHandle.standardOutput.write(Data(value.encoded + [UInt8(ascii: "\n")]))
    }
}
