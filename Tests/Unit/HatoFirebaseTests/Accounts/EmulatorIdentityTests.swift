import HatoModel
import Testing

@testable import HatoFirebase

/// Credentials of emulators in requests of the database, and the requests that emulators take (spec auth §8).
@Suite struct EmulatorIdentityTests {
    private static let token = CompactToken.text(
        header: ["alg": "none", "typ": "JWT"], claims: ["sub": "u1", "iat": 0, "exp": 100])
    private static let user: JSONValue = ["uid": "u1", "token": ["sub": "u1", "iat": 0, "exp": 100]]

    @Test func requestsOfTheDatabaseShowTheKeyForOwner() {
        let override = Array(#"{"variable":{"uid":"x"}}"#.utf8)
        for name in ["owner", "OWNER", "ya29.token"] {
            let identity = RESTIdentity(auth: name, as: override, from: "127.0.0.1").emulated("key")
            #expect(identity == RESTIdentity(auth: "key", as: override, from: "127.0.0.1"))
        }
        let identity = RESTIdentity(auth: Self.token, from: "127.0.0.1").emulated("key")
        #expect(identity.auth == "key" && identity.from == "127.0.0.1")
        #expect(identity.as.flatMap { try? JSONParser.parse($0) } == Self.user)
        for other in [nil, "", "a.b.c", "key"] {
            #expect(RESTIdentity(auth: other).emulated("key") == RESTIdentity(auth: other))
        }
    }

    @Test func socketsShowTheKeyForOwner() throws {
        func params(_ credential: SessionCredential) throws -> JSONValue {
            try JSONParser.parse(credential.emulatedParams("key"))
        }
        #expect(try params(SessionCredential("owner", isToken: true)) == ["auth": "key"])
        #expect(
            try params(SessionCredential("owner", isToken: false, override: .signedOut)) == ["auth": "key", "as": nil])
        #expect(try params(SessionCredential(Self.token, isToken: true)) == ["auth": "key", "as": Self.user])
        #expect(try params(SessionCredential("other", isToken: true)) == ["auth": "other"])
    }

    // MARK: Hosts and origins

    private func isTaken(_ headers: KeyValuePairs<String, String>, beyond: Bool = false) -> Bool {
        let head = RESTHead(method: "GET", target: "/", headers: headers.map { (name: $0.key, value: $0.value) })
        return LoopbackHosts(takesAddresses: beyond).problem(head) == nil
    }

    @Test(arguments: [
        "localhost", "LOCALHOST:7700", "app.localhost:1", "127.0.0.1:7700", "127.9.9.9", "[::1]:7700", "10.0.2.2:7700",
        "localhost.", "app.localhost.:80",
    ])
    func namesOfThisMachineAreTaken(host: String) {
        #expect(isTaken(["Host": host]))
        #expect(isTaken(["Host": "localhost", "Origin": "http://\(host)"]))
    }

    @Test(arguments: [
        "", "example.com", "localhost.example.com", "127.0.0.1.example.com", "notlocalhost", "127.0.0.256", "127.1",
        "192.168.1.5", "[fe80::1]", "localhost@example.com", "a b", "localhost, example.com", "example.com#.localhost",
        "[::1].example.com", "[::1", "localhost:80.example.com",
        "localhost#x.example.com", "localhost?x", "localhost\\x", "localhost/x", "localhost..", "127.0.0.1.",
        "notlocalhost.",
    ])
    func otherNamesAreRefused(host: String) {
        #expect(!isTaken(["Host": host]))
        #expect(!isTaken(["Host": "localhost", "Origin": "http://\(host)"]))
    }

    @Test func pagesWithoutAnOriginAreKnownByWhatBrowsersSay() {
        #expect(!isTaken([:]) && !isTaken(["Host": "localhost", "Host": "example.com"]))
        #expect(!isTaken(["Host": "localhost", "Origin": "null"]))
        // A script of another page.
        let script: KeyValuePairs = ["Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"]
        #expect(!isTaken(script))
        #expect(
            !isTaken([
                "Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors",
                "Referer": "http://example.com/localhost",
            ]))
        #expect(
            isTaken([
                "Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors",
                "Referer": "http://127.0.0.1:3000/",
            ]))
        #expect(isTaken(["Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"]))
        #expect(isTaken(["Host": "localhost", "Sec-Fetch-Site": "same-site"]))
    }

    @Test func beyondThisMachineAddressesAreTakenWithTheirOwnPages() {
        #expect(isTaken(["Host": "192.168.1.5:7700"], beyond: true))
        #expect(isTaken(["Host": "[fe80::1]:7700"], beyond: true))
        #expect(isTaken(["Host": "192.168.1.5:7700", "Origin": "http://192.168.1.5:3000"], beyond: true))
        #expect(!isTaken(["Host": "192.168.1.5:7700", "Origin": "http://203.0.113.7"], beyond: true))
        #expect(!isTaken(["Host": "chat.example.com"], beyond: true))
    }
}
