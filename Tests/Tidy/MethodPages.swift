import Foundation
import HatoModel
import Testing

/// The METHODS.md of each service describes the declared methods; `make methods` writes them again.
@Suite struct MethodPages {
    private let repository = Repository()

    struct Page: Sendable, CustomTestStringConvertible {
        var path: String
        var title: String
        var methods: [any RPCRequest.Type]
        var notifications: [any RPCNotification.Type]
        var testDescription: String { path }
    }

    static let pages = [
        Page(
            path: "Services/Auth/METHODS.md", title: "Methods of auth", methods: Auth.methods,
            notifications: Auth.notifications),
        Page(
            path: "Services/Messages/METHODS.md", title: "Methods of messages", methods: Messages.methods,
            notifications: Messages.notifications),
        Page(
            path: "Services/Notifier/METHODS.md", title: "Methods of notifier", methods: Notifier.methods,
            notifications: Notifier.notifications),
        Page(
            path: "Shared/HatoRPC/METHODS.md", title: "Methods of every service", methods: Service.builtIn,
            notifications: []),
    ]

    @Test(arguments: pages)
    func thePageIsWhatIsDeclared(page: Page) throws {
        let text = MethodsPage.markdown(title: page.title, methods: page.methods, notifications: page.notifications)
        if ProcessInfo.processInfo.environment["HATO_WRITE_METHODS"] != nil {
            try text.write(to: repository.root.appending(path: page.path), atomically: true, encoding: .utf8)
        }
        let current = (try? repository.text(page.path)) ?? ""
        #expect(current == text, "\(page.path) is not up to date: run make methods")
    }
}
