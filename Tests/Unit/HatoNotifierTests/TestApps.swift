import CryptoExtras
import HatoModel
import HatoPush
import Testing

/// Apps with credentials that no provider takes.
enum TestApps {
    private static let key = try? _RSA.Signing.PrivateKey(keySize: .bits2048)

    /// `default`, with a service account of FCM.
    static func fcm() throws -> PushApps {
        let file: JSONObject = [
            "type": "service_account", "project_id": "chat-1", "private_key_id": "k1",
            "private_key": .string(try #require(key).pkcs8PEMRepresentation),
            "client_email": "push@chat-1.iam.gserviceaccount.com",
            "token_uri": "https://oauth2.googleapis.com/token",
        ]
        var app = PushApp()
        app.fcm = try FCMServiceAccount(JSONValue.object(file).encoded)
        return PushApps(["default": app])
    }
}

/// A subscription of a browser.
enum TestSubscription {
    private static let point =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    private static let secret = "BTBZMqHH6r4Tts7J_aSIgg"

    /// As a browser gives it.
    static func json(at endpoint: String) -> JSONValue {
        ["endpoint": .string(endpoint), "keys": ["p256dh": .string(point), "auth": .string(secret)]]
    }

    static func at(_ endpoint: String) throws -> WebPushSubscription {
        try WebPushSubscription(
            endpoint: endpoint, p256dh: try #require(Base64.url.decode(point.utf8)),
            auth: try #require(Base64.url.decode(secret.utf8)))
    }
}
