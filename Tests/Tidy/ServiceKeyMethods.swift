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
}
