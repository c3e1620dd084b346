import Crypto
import HatoModel
import Testing

@testable import HatoPush

@Suite struct WebPushEncryptionTests {
    private static func bytes(_ text: String) -> [UInt8] { Base64.url.decode(text.utf8) ?? [] }

    /// RFC 8291 §5, with the private keys of its appendix.
    @Test func theVectorOfTheStandardIsReproduced() throws {
        let receiver = try WebPushSubscription(
            endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
            p256dh: Self.bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            auth: Self.bytes("BTBZMqHH6r4Tts7J_aSIgg"))
        let sender = try P256.KeyAgreement.PrivateKey(
            rawRepresentation: Self.bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
        let encryption = WebPushEncryption(key: sender, salt: Self.bytes("DGv6ra1nlYgDCS1FRnbzlw"))
        let text = Array("When I grow up, I want to be a watermelon".utf8)
        let body = try encryption.body(text, for: receiver, paddedTo: 0)
        let expected =
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
            + "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        #expect(Base64.url.encode(body) == expected)
    }

    @Test(arguments: [(0, 256), (1, 256), (256, 256), (257, 512), (3_840, 3_840), (3_841, 3_993), (3_993, 3_993)])
    func textsAreHiddenInFewLengths(count: Int, padded: Int) throws {
        #expect(WebPushEncryption.paddedCount(count) == padded)
        let receiver = WebPushReceiver()
        let text = [UInt8](repeating: 0x61, count: count)
        let body = try WebPushEncryption().body(
            text, for: try receiver.subscription("https://push.example.com/"), paddedTo: padded)
        #expect(body.count == 86 + padded + 1 + 16 && body.count <= WebPushEncryption.bodyBytesMax)
        let record = try receiver.record(of: body)
        #expect(record == text + [2] + [UInt8](repeating: 0, count: padded - count))
    }

    @Test func eachMessageHasAKeyAndASaltOfItsOwn() throws {
        let receiver = try WebPushReceiver().subscription("https://push.example.com/")
        let bodies = try (0..<2).map { _ in try WebPushEncryption().body([1], for: receiver, paddedTo: 256) }
        #expect(bodies[0][..<16] != bodies[1][..<16])
        #expect(bodies[0][21..<86] != bodies[1][21..<86])
    }

    @Test func aKeyThatIsNoPointAndASecretOfAnotherLengthAreRefused() throws {
        let point = Array(P256.KeyAgreement.PrivateKey().publicKey.x963Representation)
        let auth = [UInt8](repeating: 1, count: 16)
        var besideTheCurve = point
        besideTheCurve[64] ^= 1
        let keys = [
            besideTheCurve, [4] + [UInt8](repeating: 0, count: 64), Array(point.dropLast()), [2] + point.dropFirst(),
            [],
        ]
        for key in keys {
            #expect(throws: ArgumentError.self) { try WebPushSubscription(endpoint: "", p256dh: key, auth: auth) }
        }
        for secret in [[], Array(auth.dropLast()), auth + [1]] {
            #expect(throws: ArgumentError.self) { try WebPushSubscription(endpoint: "", p256dh: point, auth: secret) }
        }
        #expect(try WebPushSubscription(endpoint: "", p256dh: point, auth: auth).p256dh == point)
    }
}
