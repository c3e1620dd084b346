import HatoIdentity
import HatoMessages
import HatoNotifier

/// The keys with which the services of this process call each other. They live as long as the process.
struct DevKeys: Sendable {
    let messages = DevFolder.newKey()
    let notifier = DevFolder.newKey()
    let gateway = DevFolder.newKey()

    /// What auth accepts. Throws `ArgumentError`.
    func ofAuth(_ administrators: AdministratorKeys) throws -> ServiceKeys {
        try ServiceKeys(
            [
                ServiceKeys.Entry(name: "messages", key: messages, methods: MessagesServer.methodsOfAuth),
                ServiceKeys.Entry(name: "notifier", key: notifier, methods: NotifierServer.methodsOfAuth), ofGateway,
            ], besides: administrators)
    }

    /// What messages accepts. Throws `ArgumentError`.
    func ofMessages(_ administrators: AdministratorKeys) throws -> ServiceKeys {
        try ServiceKeys(
            [
                ServiceKeys.Entry(
                    name: "notifier", key: notifier, methods: NotifierServer.methodsOfMessages, mayUseAs: true),
                ofGateway,
            ],
            besides: administrators)
    }

    /// What the notifier accepts. Throws `ArgumentError`.
    func ofNotifier(_ administrators: AdministratorKeys) throws -> ServiceKeys {
        try ServiceKeys([ofGateway], besides: administrators)
    }

    /// It speaks for its clients, and has no rights of its own.
    private var ofGateway: ServiceKeys.Entry {
        ServiceKeys.Entry(name: "gateway", key: gateway, methods: [], mayForward: true)
    }
}
