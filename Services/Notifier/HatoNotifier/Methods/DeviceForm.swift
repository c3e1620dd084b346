import HatoModel
import HatoPush

/// Reads the address that `notifier.devices.register` is given: the members of its platform, and no others.
struct DeviceForm {
    let request: Notifier.Devices.Register
    let caller: Caller

    /// Where the device is. Throws `RPCError` that names the member.
    func address() throws(RPCError) -> DeviceRecord.Address {
        try refuseOtherMembers()
        switch request.platform {
        case .webhook: return .init(url: try given(request.url, "url"))
        case .apns:
            let token = try given(request.token, "token")
            let checked = try checked("token") { () throws(ArgumentError) in
                try APNsDevice(token: token, environment: .production)
            }
            return .init(token: checked.token, environment: request.environment)
        case .fcm:
            switch (request.token, request.fid) {
            case (let token?, nil):
                _ = try checked("token") { () throws(ArgumentError) in try FCMRegistration(token: token) }
                return .init(token: token)
            case (nil, let fid?):
                _ = try checked("fid") { () throws(ArgumentError) in try FCMRegistration(fid: fid) }
                return .init(fid: fid)
            default: throw .invalidParams("token", "A device of fcm has either a token or a fid")
            }
        case .webpush:
            let subscription = try given(request.subscription, "subscription")
            let key = try decoded(subscription.keys.p256dh, "subscription.keys.p256dh")
            let auth = try decoded(subscription.keys.auth, "subscription.keys.auth")
            _ = try checked("subscription.keys") { () throws(ArgumentError) in
                try WebPushSubscription(endpoint: subscription.endpoint, p256dh: key, auth: auth)
            }
            return .init(url: subscription.endpoint, keys: (key, auth))
        case .email: return .init(email: try verifiedAddress().address)
        }
    }

    /// That of the token of the caller. A request cannot name another one: no user has others mailed.
    private func verifiedAddress() throws(RPCError) -> Mailbox {
        guard case .user(let user) = caller else {
            throw refused("Only a user can register e-mail, with an ID token that has a verified address")
        }
        guard let address = user.claims["email"]?.string else { throw refused("The ID token has no e-mail address") }
        guard user.claims["email_verified"] == true else {
            throw refused("The e-mail address of the ID token is not verified; verify it and get another ID token")
        }
        do { return try Mailbox(address) } catch {
            throw refused("E-mails cannot be sent to the address of the ID token: \(error.message)")
        }
    }

    private func refused(_ why: String) -> RPCError { NotifierError.emailNotVerified(why).rpcError }

    private func refuseOtherMembers() throws(RPCError) {
        let members: [(name: String, isGiven: Bool, platforms: Set<Notifier.Platform>)] = [
            ("token", request.token != nil, [.apns, .fcm]), ("fid", request.fid != nil, [.fcm]),
            ("subscription", request.subscription != nil, [.webpush]), ("url", request.url != nil, [.webhook]),
            ("secret", request.secret != nil, [.webhook]), ("environment", request.environment != nil, [.apns]),
        ]
        for member in members where member.isGiven && !member.platforms.contains(request.platform) {
            let name = request.platform.rawValue
            throw .invalidParams(member.name, "A device of \(name) has no \(member.name)")
        }
    }

    private func given<Value>(_ value: Value?, _ name: String) throws(RPCError) -> Value {
        guard let value else { throw .invalidParams(name, "A device of \(request.platform.rawValue) has a \(name)") }
        return value
    }

    /// Browsers write base64url without padding; some libraries pad it.
    private func decoded(_ text: String, _ name: String) throws(RPCError) -> [UInt8] {
        var digits = text.utf8[...]
        while digits.last == UInt8(ascii: "=") { digits.removeLast() }
        guard let bytes = Base64.url.decode(digits) else {
            throw .invalidArgument(name, reason: "invalid_key", "\(name) is base64url")
        }
        return bytes
    }

    private func checked<Value>(
        _ name: String, _ body: () throws(ArgumentError) -> Value
    ) throws(RPCError) -> Value {
        do { return try body() } catch { throw .invalidArgument(name, reason: error.reason, error.message) }
    }
}
