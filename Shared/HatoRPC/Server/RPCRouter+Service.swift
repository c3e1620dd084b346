import HatoModel

extension RPCRouter {
    /// What every service answers: `rpc.discover`, `service.*`, `session.*`.
    mutating func addServiceMethods(
        _ configuration: RPCServerConfiguration, counts: @escaping @Sendable () async -> LoopCounts
    ) {
        let start = configuration.now()
        addCold("service.health", .anyone) {
            let health = await configuration.health()
            let uptime = Double((configuration.now() - start) / 1_000)
            return [
                "service": .string(configuration.service), "version": .string(configuration.version),
                "status": .string(health.status.rawValue), "uptimeSeconds": .number(uptime),
                "checks": .object(health.checks),
            ]
        }
        addCold("service.metrics", .anyone) {
            let own = await counts().prometheus(service: configuration.service)
            return ["text": .string(own + (await configuration.metrics()))]
        }
        addCold("service.config", .administrator) { await configuration.settings() }
        addCold("rpc.discover", .anyone) { [:] }
        add(RPCMethod(name: "session.authenticate", access: .anyone, isSlow: false, start: .authenticate))
        add(RPCMethod(name: "session.end", access: .anyone, isSlow: false, start: .endSession))
    }

    private mutating func addCold(
        _ name: String, _ access: Access, _ answer: @escaping @Sendable () async throws -> JSONValue
    ) {
        let start: RPCMethod.Cold = { params, _, pending in
            do {
                if let unknown = params.members.first {
                    throw RPCError.invalidParams(unknown.name, "\(name) has no parameters")
                }
                let result = try await answer()
                pending.succeed { $0.write(result) }
            } catch {
                pending.fail(error)
            }
        }
        add(RPCMethod(name: name, access: access, isSlow: false, start: .cold(start)))
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
            + line("errors_total", "counter", "Requests answered with an error.", errors)
            + line("notifications_sent_total", "counter", "Notifications sent to listeners.", notificationsSent)
            + line("read_bytes_total", "counter", "Bytes read from peers.", bytesRead)
            + line("written_bytes_total", "counter", "Bytes written to peers.", bytesWritten)
    }
}
