import HatoModel

extension RPCRouter {
    /// The methods of every service: `rpc.discover`, `service.*`, `session.*`.
    ///
    /// - Parameter health: as the caller may know it.
    mutating func addServiceMethods(
        _ configuration: RPCServerConfiguration, health: @escaping @Sendable (Caller) async -> RPCHealth,
        counts: @escaping @Sendable () async -> LoopCounts
    ) {
        let start = configuration.now()
        handle(Service.Health.self, isSmall: true) { _, context in
            let health = await health(context.caller)
            var result = Service.Health.Result(
                service: configuration.service, version: configuration.version, status: health.status)
            // What is wrong inside helps an attacker, too.
            if context.caller.isAdministrator {
                result.uptimeSeconds = Int((configuration.now() - start) / 1_000)
                result.checks = health.checks
            }
            return result
        }
        handle(Service.Metrics.self) { _, _ in
            let own = await counts().prometheus(service: configuration.service)
            return Service.Metrics.Result(text: own + (await configuration.metrics()))
        }
        handle(Service.Config.self) { _, _ in await configuration.settings() }
        let names = Set(configuration.methods.map { $0.method })
        let document = OpenRPC.document(
            title: "Hato \(configuration.service)", version: configuration.version,
            methods: configuration.methods + Service.builtIn.filter { !names.contains($0.method) },
            notifications: configuration.notifications)
        let encoded = EncodedJSON(.object(document))
        handleInOrder(RPC.Discover.self) { _, _, reply in reply.succeed(encoded: encoded) }
        add(RPCMethod(name: Session.Authenticate.method, access: .anyone, isSlow: false, start: .authenticate))
        add(RPCMethod(name: Session.End.method, access: .anyone, isSlow: false, start: .endSession))
        add(
            RPCMethod(
                name: Session.Forward.method, access: .anyone, isSlow: false, start: .forward,
                // `as` is unknown here: each call says for which user it is.
                ownParameters: ["as", "from"]))
    }
}

extension LoopCounts {
    /// In Prometheus' text format.
    func prometheus(service: String) -> String {
        func line(_ name: String, _ kind: String, _ help: String, _ value: Int) -> String {
            "# HELP hato_rpc_\(name) \(help)\n# TYPE hato_rpc_\(name) \(kind)\n"
                + "hato_rpc_\(name){service=\"\(service)\"} \(value)\n"
        }
        return line("connections", "gauge", "Open connections.", connections)
            + line("connections_accepted_total", "counter", "Connections accepted.", accepted)
            + line("requests_total", "counter", "Requests read, entries of batches each.", requests)
            + line("errors_total", "counter", "Requests whose response is an error.", errors)
            + line("notifications_sent_total", "counter", "Notifications sent to listeners.", notificationsSent)
            + line("read_bytes_total", "counter", "Bytes read from peers.", bytesRead)
            + line("written_bytes_total", "counter", "Bytes written to peers.", bytesWritten)
            + line(
                "stalled_peers_total", "counter", "Peers cut off for taking nothing while others wait for memory.",
                stalledPeers)
            + line(
                "held_bytes", "gauge", "Bytes of requests, running reads, and responses and events that peers lack.",
                heldBytes)
    }
}
