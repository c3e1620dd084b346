import HatoModel
import Testing

/// Which requests may be sent again when their outcome is unknown (protocol §3).
@Suite struct IdempotenceTests {
    private static let path = TreePath.root
    private static let increment: JSONValue = ["a": ["b": [".sv": ["increment": 1]]]]
    private static let timestamp: JSONValue = ["a": [".sv": "timestamp"], "b": [1, "x"]]

    @Test func aWriteIsUnlessItIncrements() {
        #expect(Messages.Set(path: Self.path, value: Self.timestamp).isIdempotent)
        #expect(!Messages.Set(path: Self.path, value: Self.increment).isIdempotent)
        #expect(!Messages.Set(path: Self.path, value: [".value": [".sv": ["increment": 1]]]).isIdempotent)
        #expect(!Messages.Set(path: Self.path, value: [1, Self.increment]).isIdempotent)
        #expect(Messages.Update(path: Self.path, values: ["x": Self.timestamp]).isIdempotent)
        #expect(!Messages.Update(path: Self.path, values: ["x": 1, "y": Self.increment]).isIdempotent)
        #expect(Messages.Remove(path: Self.path).isIdempotent)
    }

    @Test func aConditionMakesItIdempotent() {
        #expect(Messages.Set(path: Self.path, value: Self.increment, ifMatch: "null_etag").isIdempotent)
        #expect(Messages.Set(path: Self.path, value: Self.increment, ifVersion: 3).isIdempotent)
    }

    @Test func whatIsRefusedTheSecondTimeIsNot() {
        #expect(!Auth.Users.Delete(uid: "u").isIdempotent)
        #expect(!Auth.Account.Update(password: "sazae-and-friends").isIdempotent)
        #expect(Auth.Account.Update(displayName: "波平").isIdempotent)
    }

    @Test func aPushIsByTheKeyOfTheClient() {
        #expect(!Messages.Push(path: Self.path, value: 1).isIdempotent)
        let key = Messages.Push.example.result.key
        #expect(Messages.Push(path: Self.path, value: 1, key: key).isIdempotent)
    }

    @Test func aNotificationIsByItsKeyAndADeviceByItsSecret() {
        var send = Notifier.Send(to: .init(uids: ["u"]), notification: .init(title: "t"))
        #expect(!send.isIdempotent)
        send.idempotencyKey = "k"
        #expect(send.isIdempotent)
        #expect(!Notifier.Devices.Register(url: "https://example.com").isIdempotent)
        #expect(Notifier.Devices.Register(url: "https://example.com", secret: "whsec_x").isIdempotent)
        #expect(Notifier.Dead.Drop(deliveries: ["d"]).isIdempotent)
        #expect(!Notifier.Dead.Drop(all: true).isIdempotent)
    }

    /// Writes that create something, are refused the second time, or end what another call may have begun since.
    @Test func otherWritesAreNotUnlessTheySaySo() {
        let names = (Auth.methods + Messages.methods + Notifier.methods).filter { !Self.example($0) }.map { $0.method }
        #expect(
            names == [
                "auth.signUp", "auth.signIn", "auth.sessions.fork", "auth.keys.rotate", "auth.account.delete",
                "auth.users.create", "auth.users.delete", "auth.users.invite", "auth.code.request", "auth.code.check",
                "auth.code.apply", "auth.signInWithCode", "auth.signInWithProvider", "auth.providers.remove",
                "auth.customToken.signers.remove", "auth.signInWithCustomToken", "auth.mail.replay", "auth.mail.drop",
                "messages.push",
                "messages.databases.create", "messages.databases.drop",
                "notifier.devices.register", "notifier.devices.rotateSecret", "notifier.devices.unregister",
                "notifier.apps.reload", "notifier.apps.resume",
                "notifier.triggers.remove", "notifier.types.remove", "notifier.sendToDevice", "notifier.dead.replay",
                "notifier.dead.drop", "notifier.categories.remove",
            ])
    }

    private static func example<Request: RPCRequest>(_: Request.Type) -> Bool { Request.example.request.isIdempotent }
}
