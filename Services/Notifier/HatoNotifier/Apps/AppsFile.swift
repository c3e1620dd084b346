public import HatoModel
public import HatoPush

/// The document of the setting `apps-file`: the credentials of each app, by its id.
///
/// ```yaml
/// default:
///   apns: {key-file: AuthKey_ABC123DEFG.p8, key-id: ABC123DEFG, team-id: DEF123GHIJ, topic: com.example.chat}
///   fcm: {service-account-file: service-account.json}
///   webpush: {key-file: webpush.key, subject: "mailto:admin@example.com"}
///   mail: {url: "smtp://hato@mail.example.com:587", password-file: mail-password, from: Chat <chat@example.com>}
/// ```
public struct AppsFile: Sendable {
    private let document: JSONValue
    private let read: @Sendable (String) throws -> [UInt8]

    /// Apps in one document.
    private static let appsMax = 1_000

    /// - Parameters:
    ///   - document: objects and texts.
    ///   - read: Reads a file that the document names. Throws an error that says what is wrong, without secrets.
    public init(_ document: JSONValue, read: @escaping @Sendable (String) throws -> [UInt8]) {
        self.document = document
        self.read = read
    }

    /// The apps. Throws `ArgumentError` that names the member that is wrong, or what reading a file throws.
    public func apps() throws -> PushApps {
        guard let apps = document.object, apps.count <= Self.appsMax else {
            throw Self.error("the file should have a member for each app, at most \(Self.appsMax), such as default")
        }
        var read = PushApps()
        for app in apps.members {
            guard (1...256).contains(app.name.utf8.count), app.name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw Self.error("the id of an app should have 1 to 256 bytes and no control characters")
            }
            read.apps[app.name] = try self.app(
                Members(app.value, at: app.name, known: ["apns", "fcm", "webpush", "mail"]))
        }
        return read
    }

    private func app(_ members: Members) throws -> PushApp {
        var app = PushApp()
        app.apns = try members.child(
            "apns", known: ["key-file", "key-id", "team-id", "topic", "environment", "url", "ca-file"]
        ).map { apns in try credentials(apns) }
        app.fcm = try members.child("fcm", known: ["service-account-file", "url"]).map { fcm in
            let (name, file) = try contents(fcm, "service-account-file")
            // Only a stand-in of FCM on this machine is called without TLS.
            let account = try fcm.checked(name) { () throws(ArgumentError) in
                try FCMServiceAccount(file, allowsLoopback: true)
            }
            guard let url = try fcm.optionalText("url") else { return account }
            return try fcm.checked("url") { () throws(ArgumentError) in
                try FCMServiceAccount(file, url: url, allowsLoopback: true)
            }
        }
        app.webpush = try members.child("webpush", known: ["key-file", "subject", "allow-private"]).map { webpush in
            let (name, file) = try contents(webpush, "key-file")
            let subject = try webpush.text("subject")
            let allowsPrivate = try webpush.flag("allow-private")
            try webpush.checked("subject") { () throws(ArgumentError) in
                try WebPushCredentials.check(subject: subject)
            }
            return try webpush.checked(name) { () throws(ArgumentError) in
                try WebPushCredentials(
                    key: String(decoding: file, as: UTF8.self), subject: subject, allowsPrivate: allowsPrivate)
            }
        }
        app.mail = try members.child(
            "mail", known: ["url", "from", "password-file", "tls", "authority-file", "locale"]
        ).map { mail in try self.mail(mail) }
        return app
    }

    private func mail(_ mail: Members) throws -> MailCredentials {
        var settings = MailCredentials.Settings(url: try mail.text("url"), from: try mail.text("from"))
        settings.password = try mail.optionalText("password-file").map { try read($0) }
        settings.authorities = try mail.optionalText("authority-file").map { try read($0) }
        settings.tls = try mail.optionalText("tls")
        settings.locale = try mail.optionalText("locale")
        do { return try MailCredentials(settings) } catch { throw mail.error(error.member, error.text) }
    }

    private func credentials(_ apns: Members) throws -> APNsCredentials {
        let (name, file) = try contents(apns, "key-file")
        let app = APNsCredentials.App(
            keyID: try apns.text("key-id"), teamID: try apns.text("team-id"), topic: try apns.text("topic"))
        let environment = try apns.optionalText("environment").map { text throws(ArgumentError) in
            guard let environment = Notifier.APNsEnvironment(rawValue: text) else {
                throw apns.error("environment", "should be production or sandbox")
            }
            return environment
        }
        let authorities = try apns.optionalText("ca-file").map { String(decoding: try read($0), as: UTF8.self) }
        let server = try apns.optionalText("url").map { APNsCredentials.Server(url: $0, authorities: authorities) }
        guard server != nil || authorities == nil else {
            throw apns.error("ca-file", "is only for a server of your own: url is missing")
        }
        do {
            return try APNsCredentials(
                key: String(decoding: file, as: UTF8.self), app: app, environment: environment ?? .production,
                server: server)
        } catch {
            let members = [
                "invalid_key_id": "key-id", "invalid_team_id": "team-id", "invalid_topic": "topic",
                "invalid_url": "url",
                "invalid_ca": "ca-file",
            ]
            throw apns.error(members[error.reason] ?? name, "is wrong: \(error.message)")
        }
    }

    private func contents(_ members: Members, _ name: String) throws -> (name: String, bytes: [UInt8]) {
        (name, try read(try members.text(name)))
    }

    private static func error(_ text: String) -> ArgumentError { ArgumentError(reason: "invalid_apps_file", text) }

    /// An object of the document.
    private struct Members {
        private let object: JSONObject
        private let path: String

        init(_ value: JSONValue, at path: String, known: [String]) throws(ArgumentError) {
            guard let object = value.object else { throw AppsFile.error("\(path) should have members") }
            if let unknown = object.members.first(where: { !known.contains($0.name) }) {
                let names = known.sorted().joined(separator: ", ")
                throw AppsFile.error("\(path) has no member \"\(unknown.name.prefix(64))\"; known are \(names)")
            }
            (self.object, self.path) = (object, path)
        }

        func error(_ name: String, _ what: String) -> ArgumentError { AppsFile.error("\(path).\(name) \(what)") }

        func child(_ name: String, known: [String]) throws(ArgumentError) -> Members? {
            guard let value = object[name] else { return nil }
            return try Members(value, at: "\(path).\(name)", known: known)
        }

        func optionalText(_ name: String) throws(ArgumentError) -> String? {
            guard let value = object[name] else { return nil }
            guard let text = value.string, !text.isEmpty else {
                throw AppsFile.error("\(path).\(name) should be a text")
            }
            return text
        }

        func text(_ name: String) throws(ArgumentError) -> String {
            guard let text = try optionalText(name) else { throw AppsFile.error("\(path) has no \(name)") }
            return text
        }

        func flag(_ name: String) throws(ArgumentError) -> Bool {
            switch try optionalText(name) {
            case nil, "false": return false
            case "true": return true
            default: throw AppsFile.error("\(path).\(name) should be true or false")
            }
        }

        /// With the member in front of what is wrong.
        func checked<Value>(
            _ name: String, _ body: () throws(ArgumentError) -> Value
        ) throws(ArgumentError) -> Value {
            do { return try body() } catch { throw AppsFile.error("\(path).\(name): \(error.message)") }
        }
    }
}
