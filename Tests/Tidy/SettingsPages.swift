import Foundation
import HatoRuntime
import Testing

@testable import hato_auth
@testable import hato_dev
@testable import hato_gateway
@testable import hato_messages
@testable import hato_notifier

/// The SETTINGS.md of each service describes the declared settings; `make pages` writes them again.
@Suite struct SettingsPages {
    private static let shared = ServeSettings.declared(defaultPort: 0)

    struct Page: Sendable, CustomTestStringConvertible {
        var path: String
        var title: String
        var declared: [Setting]
        var testDescription: String { path }

        init(_ path: String, _ title: String, _ declared: [Setting]) {
            self.path = path
            self.title = title
            self.declared = declared
        }

        /// A service's settings without those that every service has in the same form.
        init(_ service: String, of process: ServiceProcess) {
            self.init(
                "Services/\(service.capitalized)/SETTINGS.md", "Settings of \(service)",
                process.resolver.declared.filter { !SettingsPages.shared.contains($0) })
        }
    }

    static let pages = [
        Page("auth", of: AuthSettings.process), Page("messages", of: MessagesSettings.process),
        Page("notifier", of: NotifierSettings.process), Page("gateway", of: GatewaySettings.process),
        Page("dev", of: DevSettings.process),
        Page(
            "Shared/HatoRuntime/SETTINGS.md", "Settings of every service", shared.filter { $0.name != "port" }),
    ]

    @Test(arguments: pages)
    func thePageIsWhatIsDeclared(page: Page) throws {
        let text = SettingsPage.markdown(title: page.title, settings: page.declared)
        #expect(
            try GeneratedPage(path: page.path, text: text).isUpToDate(),
            "\(page.path): run make pages, which sets HATO_WRITE_PAGES")
    }

    @Test func composeNamesSettingsOfTheGatewayThatExist() throws {
        let names = GatewaySettings.process.resolver.declared.map(\.name)
        let text = try Repository().text("compose.yaml")
        let variables = text.matches(of: #/(?m)^ +HATO_GATEWAY_([A-Z_]+):/#).map { match in
            match.1.lowercased().replacing("_", with: "-")
        }
        #expect(variables.count >= 5 && variables.allSatisfy(names.contains), "\(variables)")
    }

    @Test func composePassesEverySettingOfMails() throws {
        let lines = try Repository().text("compose.yaml").split(separator: "\n")
        let passed = lines.map { $0.trimmingCharacters(in: .whitespaces) }
        for setting in ServeSettings.mail {
            let variable = "HATO_AUTH_\(setting.name.uppercased().replacing("-", with: "_")):"
            #expect(passed.contains(variable), "compose.yaml lacks \(variable) in the environment of auth")
        }
    }
}
