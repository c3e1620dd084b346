/// The methods of every service about itself (protocol §1).
public enum Service {
    public static let methods: [any RPCRequest.Type] = [Health.self, Metrics.self, Config.self]

    /// The version of all services and commands.
    public static let version = "0.1.0"

    /// The methods of all services that no service declares: `service.*`, `session.*`, `rpc.discover`.
    public static let builtIn: [any RPCRequest.Type] = methods + Session.methods + RPC.methods

    /// The health of the service.
    public struct Health: RPCRequest {
        public static let method = "service.health"
        public static let summary =
            "Returns the health of the service; to administrators also its uptime and its checks"
        public static let access = Access.anyone
        public static let effect = Effect.read

        /// The state of a service.
        public enum Status: String, FieldChoice {
            case starting
            case ready
            /// It works, but a dependency is missing (the checks name it).
            case degraded
            case stopping
        }

        public struct Result: FieldObject, Hashable {
            public var service: String
            public var version: String
            public var status: Status
            public var uptimeSeconds: Int?
            public var checks: JSONObject?

            public static let fields = Fields<Self>(
                blank: Self(service: "", version: "", status: .starting),
                .required("service", \.service, "The name of the service: `auth`, `messages` or `notifier`"),
                .required("version", \.version, "The version of the program"),
                .required(
                    "status", \.status,
                    """
                    `ready`: every check succeeds; `degraded`: it serves requests, but a check fails (e.g. no \
                    keys to verify ID tokens yet); `starting`; `stopping`: also when its store has failed
                    """),
                .optional("uptimeSeconds", \.uptimeSeconds, "For administrators: seconds since the start"),
                .optional(
                    "checks", \.checks,
                    """
                    For administrators: the state of each check by name. `store`: `open`, or why it is not; \
                    `keys`: `ready`, or why ID tokens cannot be verified; `signingKey`: the id of the current \
                    key; `feeds`: for each followed database its state, version and gaps; `waitingWrites`, \
                    `passwordsWaiting`, `pending`, `unreadable`: how many writes, passwords and deliveries \
                    wait, and how many rows cannot be read
                    """))

            public init(
                service: String, version: String, status: Status, uptimeSeconds: Int? = nil, checks: JSONObject? = nil
            ) {
                self.service = service
                self.version = version
                self.status = status
                self.uptimeSeconds = uptimeSeconds
                self.checks = checks
            }
        }

        public static let example = RPCExample(
            Health(),
            Result(
                service: "messages", version: "0.1.0", status: .ready, uptimeSeconds: 86_400,
                checks: ["store": "open", "keys": "ready", "waitingWrites": 0]))

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }

    /// Counters and gauges in Prometheus format.
    public struct Metrics: RPCRequest {
        public static let method = "service.metrics"
        public static let summary = "Returns the metrics of the service in Prometheus' text format"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public struct Result: FieldObject, Hashable {
            public var text: String

            public static let fields = Fields<Self>(
                blank: Self(text: ""),
                .required("text", \.text, "The metrics in Prometheus' text format"))

            public init(text: String) { self.text = text }
        }

        public static let example = RPCExample(
            Metrics(), Result(text: "# TYPE hato_rpc_connections gauge\nhato_rpc_connections 12\n"))

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }

    /// The effective settings of the service, secrets hidden.
    public struct Config: RPCRequest {
        public typealias Result = JSONValue

        public static let method = "service.config"
        public static let summary = """
            Returns an object with a member for each setting, which has its effective `value` (a string, or \
            null; secrets are hidden) and its `source`: `flag`, `environment variable NAME`, `KEY in FILE`, \
            `memory-bytes` or `default`
            """
        public static let access = Access.administrator
        public static let effect = Effect.read

        public static let example = RPCExample(Config(), ["port": ["value": "7702", "source": "default"]])

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }
}
