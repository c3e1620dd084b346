import Foundation
import HatoModel

/// Programs of others that push the same body to the same sink, where they are installed.
struct OtherPushers: Sendable {
    var folder: PushFolder
    var port: Int
    /// The file with the body.
    var body: String

    // MARK: h2load

    /// Posts with h2load of nghttp2, on one connection; nil when it is not installed.
    func h2load(_ count: Int, streams: Int) throws -> DeliveryRate? {
        guard let path = Programs.find("h2load") else { return nil }
        let token = String(repeating: "0", count: 64)
        let ended = try Programs.run(
            path,
            [
                "-n", "\(count)", "-c", "1", "-t", "1", "-m", "\(streams)", "-d", body, "-H",
                "apns-topic: \(PushFolder.topic)", "-H", "apns-push-type: alert",
                "https://127.0.0.1:\(port)/3/device/\(token)",
            ])
        guard ended.output.contains("\(count) succeeded"), let perSecond = Self.perSecond(ended.output) else {
            throw BenchError("h2load: \(ended.output)")
        }
        return DeliveryRate(perCore: Double(count) / max(ended.processorSeconds, 0.001), perSecond: perSecond)
    }

    /// `finished in 1.01s, 19801.98 req/s, 4.50MB/s`
    private static func perSecond(_ output: String) -> Double? {
        let line = output.split(separator: "\n").first { $0.hasPrefix("finished in") }
        return line?.split(separator: " ").lazy.compactMap { Double($0) }.first
    }

    // MARK: aioapns

    /// Python that has aioapns: `HATO_BENCH_PYTHON`, that of `make interop-test`, or that of `PATH`; nil: none has it.
    static func python() -> String? {
        let named = ProcessInfo.processInfo.environment["HATO_BENCH_PYTHON"]
        let candidates = [named, ".venv-interop/bin/python", Programs.find("python3")].compactMap { $0 }
        return candidates.first { path in
            guard FileManager.default.isExecutableFile(atPath: path) else { return false }
            return (try? Programs.run(path, ["-c", "import aioapns"]))?.status == 0
        }
    }

    /// Pushes with aioapns, on one connection.
    func aioapns(_ python: String, _ count: Int, streams: Int) throws -> DeliveryRate {
        let ended = try Programs.run(
            python,
            [
                "-c", Self.script, "\(port)", folder.certificate, folder.signingKey, PushFolder.keyID, PushFolder.team,
                PushFolder.topic, body, "\(count)", "\(streams)",
            ])
        let figures = try? JSONParser.parse(Array(ended.output.utf8)).object
        guard let seconds = figures?["seconds"]?.number, let processor = figures?["processor"]?.number else {
            throw BenchError("aioapns: status \(ended.status), \(ended.output)")
        }
        return DeliveryRate(perCore: Double(count) / processor, perSecond: Double(count) / seconds)
    }

    /// It has no setting for the address.
    private static let script = """
        import asyncio, json, logging, ssl, sys, time, warnings
        import aioapns, aioapns.connection

        port, authority, key, key_id, team, topic, body, count, streams = sys.argv[1:]
        logging.getLogger("aioapns").setLevel(logging.CRITICAL)
        message = json.load(open(body, encoding="utf-8"))

        def request(number):
            return aioapns.NotificationRequest(
                f"{number:064x}", message, time_to_live=3600, priority=10, push_type=aioapns.PushType.ALERT)

        async def push(client, numbers):
            for number in numbers:
                result = await client.send_notification(request(number))
                if not result.is_successful:
                    sys.exit(f"refused: {result.description}")

        async def main():
            context = ssl.create_default_context(cafile=authority)
            context.set_alpn_protocols(["h2"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                client = aioapns.APNs(
                    key=open(key, encoding="utf-8").read(), key_id=key_id, team_id=team, topic=topic,
                    ssl_context=context, max_connections=1)
            client.pool.protocol_class = type(
                "LocalProtocol", (aioapns.connection.APNsProductionClientProtocol,),
                {"APNS_SERVER": "127.0.0.1", "APNS_PORT": int(port)})
            await push(client, [0])
            numbers = iter(range(int(count)))
            begin, used = time.perf_counter(), time.process_time()
            await asyncio.gather(*(push(client, numbers) for _ in range(int(streams))))
            print(json.dumps({"seconds": time.perf_counter() - begin, "processor": time.process_time() - used}))

        asyncio.run(main())
        """
}

/// Programs that are run to their end.
enum Programs {
    struct Ended {
        var status: Int32
        var output: String
        /// As it was some milliseconds before the end.
        var processorSeconds: Double
    }

    static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        return path.split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// - Parameter arguments: of a program that writes little: its output is read when it has ended.
    static func run(_ path: String, _ arguments: [String]) throws -> Ended {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try process.run()
        var seconds = 0.0
        while process.isRunning {
            if let used = try? CPUTime.seconds(of: process.processIdentifier) { seconds = max(seconds, used) }
            Pause.milliseconds(2)
        }
        process.waitUntilExit()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        return Ended(status: process.terminationStatus, output: text, processorSeconds: seconds)
    }
}
