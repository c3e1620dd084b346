import HatoTesting
import Testing

@testable import HatoMail

struct MailAddressTests {
    @Test(arguments: [
        ("masuo@example.com", "masuo@example.com", false), ("a+b.c@x-y.example", "a+b.c@x-y.example", false),
        ("root@localhost", "root@localhost", false), ("masuo@例え.jp", "masuo@xn--r8jz45g.jp", false),
        ("masuo@BÜCHER.example", "masuo@xn--bcher-kva.example", false),
        ("masuo@bu\u{308}cher.example", "masuo@xn--bcher-kva.example", false),
        ("masuo@ｅｘａｍｐｌｅ.com", "masuo@example.com", false),
        ("鳩@例え.jp", "鳩@xn--r8jz45g.jp", true), ("cafe\u{301}@example.com", "caf\u{E9}@example.com", true),
    ])
    func addressesHaveADomainInASCII(typed: String, text: String, needsUTF8: Bool) throws {
        let address = try MailAddress(typed, field: "to")
        #expect(address.text.utf8.elementsEqual(text.utf8) && address.needsUTF8 == needsUTF8)
    }

    @Test func textsThatAreNoAddressAreRefusedByTheNameOfTheField() {
        for text in [
            "", "@", "a@", "@b.co", "a@@b.co", "a@b@c.co", "a b@c.co", "a@b..co", ".a@b.co", "a.@b.co", "a@-b.co",
            "a@b-.co", "a@b.co ", "a@b,co", "<a@b.co>", "\"a\"@b.co", "a@[127.0.0.1]", "a\u{200B}@b.co", "a@b.co>",
            "a\u{37E}b@b.co", "a@b.co> SIZE=1", "a@b.c\u{202E}o", String(repeating: "a", count: 65) + "@b.co",
            "a@" + String(repeating: "b", count: 64) + ".co", "a@" + String(repeating: "鳩", count: 64) + ".jp",
            "a@" + String(repeating: "bcd.", count: 70) + "co", String(repeating: "a", count: 1 << 20),
        ] {
            do {
                let address = try MailAddress(text, field: "to")
                Issue.record("\(address)")
            } catch {
                #expect(error.field == "to" && error.description.hasPrefix("to must "))
            }
        }
    }

    @Test func punycodeOfAnyLabelIsReadBack() {
        #expect(Punycode.encoded("他们为什么不说中文") == "ihqwcrb4cv8a8dqg056pqjye")
        #expect(Punycode.encoded("なぜみんな日本語を話してくれないのか") == "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa")
        #expect(Punycode.encoded("3年b組金八先生") == "3b-ww4c5e180e575a65lsy2b")
        #expect(Punycode.encoded(String(repeating: "鳩", count: 64)) == nil)
        let failures = FuzzInputs.failures(1_000) { random in
            var label = "鳩"
            for _ in 0..<random.below(62) {
                let scalar = Unicode.Scalar(UInt32(random.below(random.one(of: [128, 0x3000, 0x11_0000]))))
                label.unicodeScalars.append(scalar ?? "-")
            }
            guard let text = Punycode.encoded(label) else { return "not encoded" }
            let decoded = Punycode.decoded(text[...])
            return decoded?.unicodeScalars.elementsEqual(label.unicodeScalars) == true ? nil : "\(label) is \(text)"
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}

struct MailURLTests {
    @Test(
        arguments: [
            ("smtp://mail.example.com", "mail.example.com", 587, nil, false),
            ("smtps://mail.example.com", "mail.example.com", 465, nil, true),
            ("SMTP://hato@Mail.Example.com:2525/", "mail.example.com", 2_525, "hato", false),
            ("smtp://hato@example.com@mail.example.com:587", "mail.example.com", 587, "hato@example.com", false),
            ("smtp://a%3Ab%25%E9%B3%A9@mail.example.com", "mail.example.com", 587, "a:b%鳩", false),
            ("smtp://127.0.0.1:25", "127.0.0.1", 25, nil, false), ("smtps://[::1]:465", "::1", 465, nil, true),
            ("smtp://[2001:db8::1]", "2001:db8::1", 587, nil, false),
            ("smtp://例え.jp", "xn--r8jz45g.jp", 587, nil, false),
        ] as [(String, String, Int, String?, Bool)])
    func urlsAreRead(text: String, host: String, port: Int, user: String?, isImplicitTLS: Bool) throws {
        let url = try MailURL(text)
        #expect(url.host == host && url.port == port && url.user == user && url.isImplicitTLS == isImplicitTLS)
    }

    @Test(arguments: [
        ("", "must begin with smtp://"), ("mail.example.com:587", "must begin with smtp://"),
        ("http://mail.example.com", "must begin with smtp://"), ("smtp:/mail.example.com", "must begin with smtp://"),
        ("smtp://", "must have a host"), ("smtp://hato@", "must have a host"),
        ("smtp://@mail.example.com", "must have a user"),
        ("smtp://hato:geheim@mail.example.com", "must not contain a password"),
        ("smtp://a%00b@mail.example.com", "must have a user"), ("smtp://a%2@mail.example.com", "must have a user"),
        ("smtp://a%FF@mail.example.com", "must have a user"), ("smtp://a%+1@mail.example.com", "must have a user"),
        ("smtp://mail.example.com:0", "must have a port"), ("smtp://mail.example.com:65536", "must have a port"),
        ("smtp://mail.example.com:", "must have a port"), ("smtp://mail.example.com:+25", "must have a port"),
        ("smtp://mail.example.com:99999999999999999999", "must have a port"),
        ("smtp://mail.example.com/path", "must end"), ("smtp://mail.example.com?tls=no", "must end"),
        ("smtp://mail.example.com#x", "must end"), ("smtp://mail..com", "must have a host"),
        ("smtp://[::1", "must have a host"), ("smtp://[mail]:25", "must have an IPv6"),
        ("smtp://[::1]x", "must have an IPv6"),
        ("smtp://mail.example.com\r\n", "must not contain line breaks"),
        ("smtp://" + String(repeating: "x", count: 1_100), "must have at most 1024 bytes"),
    ])
    func wrongURLsAreRefusedWithoutRepeatingThem(text: String, problem: String) {
        do {
            let url = try MailURL(text)
            Issue.record("\(url)")
        } catch {
            #expect(error.field == "mail-url" && error.problem.hasPrefix(problem), "\(error)")
            #expect(!"\(error)".contains("geheim"))
        }
    }

    @Test func settingsThatDoNotFitNameTheSettingToChange() throws {
        func field(_ url: String, _ password: String?, _ tls: SMTPConfiguration.TLS = .required) throws -> String? {
            let url = try MailURL(url)
            do {
                _ = try SMTPConfiguration(url: url, password: password, tls: tls)
                return nil
            } catch {
                #expect(!"\(error)".contains("geheim"))
                return error.field
            }
        }
        #expect(try field("smtp://hato@mail.example.com", "geheim") == nil)
        #expect(try field("smtp://mail.example.com", nil) == nil)
        #expect(try field("smtp://hato@mail.example.com", nil) == "mail-password-file")
        #expect(try field("smtp://mail.example.com", "geheim") == "mail-url")
        #expect(try field("smtp://hato@mail.example.com", "") == "mail-password-file")
        #expect(try field("smtp://hato@mail.example.com", "geheim\n") == "mail-password-file")
        for host in ["localhost", "127.0.0.1", "127.1.2.3:25", "[::1]:25"] {
            #expect(try field("smtp://\(host)", nil, .none) == nil)
        }
        for url in [
            "smtp://mail.example.com", "smtp://127.0.0.1.example.com", "smtp://127.example", "smtp://10.0.0.1",
            "smtps://localhost", "smtp://hato@localhost",
        ] {
            #expect(try field(url, url.contains("@") ? "geheim" : nil, .none) == "mail-tls", "\(url)")
        }
    }

    @Test func certificateNamesAreComparedByLabel() {
        for (name, host, isRight) in [
            ("mail.example.com", "mail.example.com", true), ("MAIL.example.com", "mail.EXAMPLE.com", true),
            ("*.example.com", "mail.example.com", true), ("*.example.com", "a.mail.example.com", false),
            ("*.example.com", "example.com", false), ("*", "localhost", false), ("*.com", ".com", false),
            ("m*.example.com", "mail.example.com", false), ("mail.example.com.evil", "mail.example.com", false),
            ("", "mail.example.com", false),
        ] {
            #expect(SMTPTLS.name(name, isFor: host) == isRight, "\(name) \(host)")
        }
    }
}
