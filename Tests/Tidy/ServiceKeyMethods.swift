import HatoMessages
import HatoNotifier
import Testing

/// The methods that a service calls of another are those that `make secrets` and the pages let its key call.
@Suite struct ServiceKeyMethods {
    private let repository = Repository()

    @Test(arguments: [
        ("messages", MessagesServer.methodsOfAuth), ("notifier", NotifierServer.methodsOfAuth),
        ("notifier", NotifierServer.methodsOfMessages),
    ])
    func areListedWhereKeysAreMade(_ service: String, methods: Set<String>) throws {
        let list = methods.sorted().joined(separator: ", ")
        let script = try repository.text("scripts/make-secrets")
        #expect(script.contains("-callers.yaml \(service) \"\(list)\"\n"))
        if methods.contains("auth.follow") {
            let page = try repository.text("Services/Auth/README.md")
            #expect(page.contains("{name: \(service), key: …, methods: [\(list)]}"))
        }
    }

    /// Each service lists the gateway's key, which gives it no right to any method.
    @Test func theGatewayMayForwardToEachService() throws {
        let (script, compose) = (try repository.text("scripts/make-secrets"), try repository.text("compose.yaml"))
        #expect(script.contains("*\" gateway\") rights=\"forward: true\" ;;"))
        for service in ["auth", "messages", "notifier"] {
            #expect(script.contains("\(service)-callers.yaml"))
            #expect(compose.contains("HATO_SERVICE_KEYS_FILE: /run/secrets/\(service)-callers\n"))
            #expect(compose.contains("/\(service)-callers.yaml\""))
        }
    }
}
