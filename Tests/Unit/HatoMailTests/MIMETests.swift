import HatoTesting
import Testing

@testable import HatoMail

/// What a message looks like, and that mail programs read from it what was written.
struct MIMETests {
    private func encoded(_ message: MailMessage) -> String {
        String(decoding: MIMEWriter.bytes(message), as: UTF8.self)
    }

    @Test func japaneseMailIsReadBack() throws {
        let message = try Mails.message(
            text: "パスワードを再設定するには、次のコードを入力してください。\n\n123456\n", html: "<p>コード: <b>123456</b></p>\n")
        let mail = try #require(DecodedMail(MIMEWriter.bytes(message)))
        #expect(mail.headers["Subject"] == "パスワードの再設定")
        #expect(mail.headers["From"] == "鳩 <noreply@example.org>")
        #expect(mail.headers["To"] == "masuo@example.com")
        #expect(mail.headers["Date"] == "Thu, 26 Nov 2026 13:31:28 +0000")
        #expect(mail.headers["Message-ID"] == "<m1@example.org>")
        #expect(mail.headers["MIME-Version"] == "1.0")
        #expect(mail.bodies.map(\.type) == ["text/plain; charset=utf-8", "text/html; charset=utf-8"])
        #expect(mail.bodies.first?.text == "パスワードを再設定するには、次のコードを入力してください。\r\n\r\n123456\r\n")
        #expect(mail.bodies.last?.text == "<p>コード: <b>123456</b></p>\r\n")
    }

    @Test func englishMailStaysLegible() throws {
        let message = try Mails.message(subject: "Reset your password", text: "Your code: 123456\nIt's = \u{2713} \n")
        let text = encoded(message)
        #expect(text.contains("\r\nSubject: Reset your password\r\n"))
        #expect(text.contains("Content-Transfer-Encoding: quoted-printable\r\n\r\nYour code: 123456\r\n"))
        #expect(text.hasSuffix("It's =3D =E2=9C=93=20\r\n"))
        #expect(encoded(try Mails.message()).contains("Content-Transfer-Encoding: base64\r\n"))
    }

    @Test func encodedWordsAreShortAndSplitNoCharacter() throws {
        let family = "👨‍👩‍👧‍👦"
        let subjects = [
            String(repeating: "再設定", count: 60), String(repeating: "a鳩", count: 100),
            String(repeating: "か\u{3099}", count: 50),
            String(repeating: family, count: 20), String(repeating: "x", count: 61), "=?UTF-8?B?eA==?=", " x", "x ", "",
        ]
        for subject in subjects {
            let bytes = MIMEWriter.bytes(try Mails.message(subject: subject))
            let mail = try #require(DecodedMail(bytes))
            #expect(mail.headers["Subject"] == subject)
            #expect(mail.lines.allSatisfy { $0.utf8.count <= 78 })
            for word in encoded(try Mails.message(subject: subject)).matches(of: #/=\?UTF-8\?B\?[^?]*\?=/#) {
                #expect(word.0.utf8.count <= 75)
            }
        }
        let words = EncodedWords.encode(String(repeating: "か\u{3099}", count: 50), column: 9).split(separator: "\r\n ")
        #expect(words.count > 5)
        // Each word decodes by itself, and none begins with the mark that belongs to a letter before it.
        for word in words {
            let mail = DecodedMail(
                Array("Subject: \(word)\r\nContent-Type: x\r\nContent-Transfer-Encoding: base64\r\n\r\n".utf8))
            let first = mail?.headers["Subject"]?.unicodeScalars.first
            #expect(first == "か")
        }
    }

    @Test func namesBesideAddressesAreQuotedOrEncoded() throws {
        for (name, header) in [
            ("Hato", "From: \"Hato\"\r\n <a@example.com>"),
            ("O'Hara, \"Sam\" \\", "From: \"O'Hara, \\\"Sam\\\" \\\\\"\r\n <a@example.com>"),
            ("鳩", "From: =?UTF-8?B?6bOp?=\r\n <a@example.com>"), (" ", "From: a@example.com"),
        ] {
            let from = try MailAddress("a@example.com", displayName: name, field: "from")
            let message = try MailMessage(from: from, to: from, subject: "", text: "", id: "x", time: 0)
            #expect(encoded(message).hasPrefix(header + "\r\n"), "\(name)")
        }
    }

    @Test func lineBreaksInHeadersAndAddressesAreRefused() throws {
        for end in ["\r\n", "\n", "\r", "\u{0}", "\u{85}", "\u{2028}", "\u{B}"] {
            let text = "x\(end)Bcc: y@example.com"
            #expect(throws: MailFieldError.self) { try Mails.message(subject: text) }
            #expect(throws: MailFieldError.self) { try Mails.message(to: "a@example.com\(end)") }
            #expect(throws: MailFieldError.self) { try Mails.message(to: "a\(end)b@example.com") }
            #expect(throws: MailFieldError.self) {
                try MailAddress("a@example.com", displayName: text, field: "from")
            }
            let to = try MailAddress("a@example.com", field: "to")
            #expect(throws: MailFieldError.self) {
                try MailMessage(from: to, to: to, subject: "", text: "", id: "a\(end)b", time: 0)
            }
        }
        do {
            _ = try Mails.message(subject: "a\nb")
        } catch let error as MailFieldError {
            #expect(error.description == "subject must not contain line breaks or other control characters")
        }
    }

    @Test func longFieldsAreRefused() throws {
        let to = try MailAddress("a@example.com", field: "to")
        let body = String(repeating: "x", count: MailMessage.bodyBytesMax)
        _ = try MailMessage(from: to, to: to, subject: "", text: body, html: body, id: "x", time: 0)
        for (subject, text, html, id) in [
            (String(repeating: "x", count: 1_001), "", "", "x"), ("", body + "x", "", "x"), ("", "", body + "x", "x"),
            ("", "", "", ""), ("", "", "", "a b"), ("", "", "", String(repeating: "x", count: 129)),
        ] {
            #expect(throws: MailFieldError.self) {
                try MailMessage(from: to, to: to, subject: subject, text: text, html: html, id: id, time: 0)
            }
        }
    }

    @Test func descriptionsShowNoText() throws {
        let message = try Mails.message(secrets: ["123456"])
        var dumped = ""
        dump(message, to: &dumped)
        #expect(!"\(message)\(String(reflecting: message))\(dumped)".contains("123456"))
    }

    @Test(arguments: [
        (Int64(0), "Thu, 01 Jan 1970 00:00:00 +0000"), (951_782_400_000, "Tue, 29 Feb 2000 00:00:00 +0000"),
        (1_709_251_199_999, "Thu, 29 Feb 2024 23:59:59 +0000"), (1_709_251_200_000, "Fri, 01 Mar 2024 00:00:00 +0000"),
        (4_107_542_400_000, "Mon, 01 Mar 2100 00:00:00 +0000"), (.min, "Thu, 01 Jan 1970 00:00:00 +0000"),
        (.max, "Fri, 31 Dec 9999 23:59:59 +0000"),
    ])
    func datesAreThoseOfTheCalendar(time: Int64, text: String) { #expect(MailDate.text(time) == text) }

    @Test func linesThatBeginWithADotGetAnotherOne() throws {
        #expect(stuffed(".\r\n..\r\na.\r\n") == "..\r\n...\r\na.\r\n.\r\n")
        #expect(stuffed("x") == "x\r\n.\r\n")
        #expect(stuffed("") == ".\r\n")
        let content = SMTPEnvelope(try Mails.message(text: ".\n.x\n\r\n.\r\nQUIT\r\n")).content
        #expect(String(decoding: content, as: UTF8.self).hasSuffix("\r\n\r\n..\r\n..x\r\n\r\n..\r\nQUIT\r\n.\r\n"))
    }

    private func stuffed(_ text: String) -> String {
        String(decoding: SMTPEnvelope.stuffed(Array(text.utf8)), as: UTF8.self)
    }

    // MARK: Any text

    @Test func anyTextIsReadBackFromShortLines() {
        let pieces = [
            "a", " ", "=", "\t", ".", "\r\n", "\n", "\r", "鳩", "é", "👨‍👩‍👧", "\u{0}", "From ", "--=_hato_alternative", "=?",
            "\u{3099}",
            String(repeating: "long ", count: 20),
        ]
        let failures = FuzzInputs.failures(300) { random in
            var (text, html, subject) = ("", "", "")
            let favourite = random.one(of: pieces)
            for _ in 0..<random.below(200) { text += random.once(in: 3) ? favourite : random.one(of: pieces) }
            for _ in 0..<random.below(50) { html += random.one(of: pieces) }
            for _ in 0..<random.below(60) {
                let piece = random.one(of: pieces)
                if !piece.unicodeScalars.contains(where: TextCheck.isControl), subject.utf8.count < 900 {
                    subject += piece
                }
            }
            let hasHTML = random.once(in: 2)
            let message = try Mails.message(subject: subject, text: text, html: hasHTML ? html : nil)
            guard let mail = DecodedMail(MIMEWriter.bytes(message)) else { return "no mail" }
            guard mail.lines.allSatisfy({ $0.utf8.count <= 78 }) else { return "a long line" }
            guard mail.headers["Subject"]?.utf8.elementsEqual(subject.utf8) == true else { return "another subject" }
            let bodies = mail.bodies.map { Array($0.text.utf8) }
            let expected = (hasHTML ? [text, html] : [text]).map { Self.canonical($0) }
            return bodies == expected ? nil : "another body: \(text.debugDescription)"
        }
        #expect(failures.isEmpty, "\(failures)")
    }

    /// With CRLF at the end of each line.
    private static func canonical(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var last: UInt8 = 0
        for byte in text.utf8 {
            if byte == 13 || byte == 10 && last != 13 { bytes += [13, 10] }
            if byte != 13, byte != 10 { bytes.append(byte) }
            last = byte
        }
        return bytes.isEmpty || bytes.last == 10 ? bytes : bytes + [13, 10]
    }
}
