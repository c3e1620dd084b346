import HatoModel
import Testing

/// The METHODS.md of each service describes the declared methods; `make pages` writes them again.
@Suite struct MethodPages {
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
        #expect(
            try GeneratedPage(path: page.path, text: text).isUpToDate(),
            "\(page.path): run make pages, which sets HATO_WRITE_PAGES")
    }
}
