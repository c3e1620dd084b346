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
