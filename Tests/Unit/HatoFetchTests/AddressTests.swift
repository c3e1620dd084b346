import Testing

@testable import HatoFetch

/// Returns what it was given.
private struct TableResolver: HostResolver {
    var table: [String: [String]] = [:]

    func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress] {
        guard let texts = table[host] else { throw .unresolvable(host: host, "unknown") }
        return texts.compactMap { IPAddress($0) }
    }
}

@Suite struct AddressTests {
    private func reason(of url: String, allowsPrivate: Bool = false, _ table: [String: [String]] = [:]) async -> String?
    {
        let addressGuard = AddressGuard(.init(allowsPrivate: allowsPrivate), resolver: TableResolver(table: table))
        do {
            _ = try await addressGuard.admit(url, for: LookUpCaller(uid: "u", isDelivery: false))
            return nil
        } catch {
            return error.reason
        }
    }

    @Test(arguments: [
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1",
        "100.127.255.255",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1",
        "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
        "255.255.255.255",
        "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[fe80::1]", "[febf::1]", "[fc00::1]", "[fd12:3456::1]", "[ff02::1]", "[2001::1]", "[2001:db8::1]",
        "[2002:7f00:1::]", "[3fff::1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[100::1]", "[fec0::1]",
    ])
    func addressesInsideAreRefused(_ host: String) async {
        #expect(await reason(of: "https://\(host)/hook") == "private_address")
    }

    @Test(arguments: [
        "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1",
        "198.17.255.255",
        "223.255.255.255", "[2606:4700:4700::1111]", "[2a00:1450:4001:830::200e]", "[64:ff9b::8.8.8.8]",
    ])
    func addressesOfThePublicInternetAreCalled(_ host: String) async {
        #expect(await reason(of: "https://\(host)/hook") == nil)
    }

    @Test(arguments: [
        "https://2130706433/", "https://0x7f000001/", "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://127.1/",
        "https://127.0.1/", "https://127.0.0.01/", "https://127.0.0.1.1/", "https://256.1.1.1/", "https://1.2.3.0x4/",
        "https://[127.0.0.1]/", "https://[::1/", "https://[::g]/", "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://user:password@example.com/", "https://example.com@127.0.0.1/", "https://example.com\\@127.0.0.1/",
        "https://exam ple.com/", "https://例え.jp/", "https://%6c%6f%63alhost/", "https://example.com/a#b",
        "https:///path",
        "https://", "https:example.com", "//example.com/", "example.com", "", "ftp://example.com/",
        "file:///etc/passwd",
        "https+unix://%2Fsocket/", "https://example.com:0/", "https://example.com:65536/", "https://example.com:+443/",
        "https://example.com:44 3/", "https://example.com:/", "https://.example.com/", "https://a..b/",
        "https://-/\u{7F}",
        "https://example.com/\r\nHost: evil", "https://ex\u{0}ample.com/", "https://１２７.0.0.1/",
    ])
    func whatTwoReadersCouldTakeDifferentlyIsRefused(_ url: String) async {
        #expect(await reason(of: url, ["example.com": ["8.8.8.8"]]) == "invalid_url")
        #expect(await reason(of: url, allowsPrivate: true, ["example.com": ["8.8.8.8"]]) == "invalid_url")
    }

    @Test func everyAddressOfANameIsChecked() async {
        let table = [
            "good.example": ["8.8.8.8", "2606:4700:4700::1111"], "mixed.example": ["8.8.8.8", "10.0.0.1"],
            "inside.example": ["127.0.0.1"], "empty.example": [], "mapped.example": ["::ffff:169.254.169.254"],
        ]
        #expect(await reason(of: "https://good.example/", table) == nil)
        #expect(await reason(of: "https://GOOD.example./", table) == nil)
        #expect(await reason(of: "https://mixed.example/", table) == "private_address")
        #expect(await reason(of: "https://inside.example/", table) == "private_address")
        #expect(await reason(of: "https://mapped.example/", table) == "private_address")
        #expect(await reason(of: "https://empty.example/", table) == "unresolvable_host")
        #expect(await reason(of: "https://unknown.example/", table) == "unresolvable_host")
    }

    @Test func plainHTTPAndOtherPortsAreRefused() async {
        #expect(await reason(of: "http://8.8.8.8/") == "plain_http")
        #expect(await reason(of: "https://8.8.8.8:8443/") == nil)
        for port in [22, 25, 80, 6379, 11211] {
            #expect(await reason(of: "https://8.8.8.8:\(port)/") == "port_not_allowed")
        }
    }

    @Test func whereItIsAllowedPrivateAddressesArePlainHTTPAndAnyPort() async {
        for url in ["http://127.0.0.1:8080/", "http://[::1]:3000/", "https://192.168.1.7:4000/x", "http://10.0.0.1/"] {
            #expect(await reason(of: url, allowsPrivate: true) == nil)
        }
        for url in [
            "http://0.0.0.0/", "http://[::]/", "http://224.0.0.1/", "http://[ff02::1]/", "http://[::ffff:0.0.0.0]/",
        ] {
            #expect(await reason(of: url, allowsPrivate: true) == "private_address")
        }
    }

    @Test func anAddressHasOneNormalSpelling() throws {
        let spellings = [
            ("HTTPS://Example.COM:443/Path?q=1", "https://example.com/Path?q=1"),
            ("https://example.com", "https://example.com/"),
            ("https://example.com?x", "https://example.com/?x"),
            ("https://example.com.:8443/", "https://example.com:8443/"),
            ("https://[2606:4700:4700:0:0:0:0:1111]/", "https://[2606:4700:4700::1111]/"),
            ("http://127.0.0.1:80/a", "http://127.0.0.1/a"),
        ]
        for (given, normal) in spellings { #expect(try StrictURL(given).text == normal) }
    }

    @Test func theSystemFindsLoopback() async throws {
        let addresses = try await SystemHostResolver().addresses(
            of: "localhost", for: LookUpCaller(uid: "u", isDelivery: false))
        #expect(!addresses.isEmpty && addresses.allSatisfy { !$0.isPublic })
    }
}
