import Foundation
import HatoModel
import Synchronization

/// An SMTP server on this machine that takes every e-mail, without TLS, and records it. Each connection has a thread.
final class MailReceiver: Sendable {
    private struct Log {
        /// By `Message-ID`, each time as it came.
        var mails: [String: [String]] = [:]
        /// The `Message-ID`s of each subject.
        var subjects: [String: Set<String>] = [:]
        var count = 0
    }

    private let log = Mutex(Log())
    private let descriptor: Int32
    let port: Int

    /// Listens on a free port. Throws `MailReceiverFailed` when there is none.
    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listening, length) = (descriptor, size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, length) == 0 && listen(listening, 16) == 0
                    && getsockname(listening, $0, &size) == 0
            }
        }
        guard isListening else { throw MailReceiverFailed() }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listening, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { self.serve(connection) }
            }
        }
    }

    private struct MailReceiverFailed: Error {}

    /// The bodies and headers of each `Message-ID`, each time as they came.
    var mails: [String: [String]] { log.withLock { $0.mails } }
    /// With repetitions.
    var count: Int { log.withLock { $0.count } }
    func ids(of subject: String) -> Set<String> { log.withLock { $0.subjects[subject] ?? [] } }

    /// Listens no more; the thread that accepts ends.
    func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    private func serve(_ connection: Int32) {
        defer { close(connection) }
        var pending: [UInt8] = []
        func reply(_ text: String) -> Bool {
            let bytes = Array("\(text)\r\n".utf8)
            return send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
        }
        func line() -> String? {
            while true {
                if let end = pending.firstIndex(of: 10) {
                    let line = String(decoding: pending[..<end], as: UTF8.self)
                    pending.removeSubrange(...end)
                    return line.hasSuffix("\r") ? String(line.dropLast()) : line
                }
                var block = [UInt8](repeating: 0, count: 4_096)
                let count = recv(connection, &block, block.count, 0)
                guard count > 0 else { return nil }
                pending += block[..<count]
            }
        }
        guard reply("220 mail.example") else { return }
        while let command = line() {
            switch command.prefix(4).uppercased() {
            case "EHLO": guard reply("250-mail.example\r\n250-SMTPUTF8\r\n250 8BITMIME") else { return }
            case "DATA":
                guard reply("354 go on") else { return }
                var lines: [String] = []
                while let text = line(), text != "." { lines.append(text) }
                came(lines)
                guard reply("250 queued") else { return }
            case "QUIT":
                _ = reply("221 bye")
                return
            default: guard reply("250 ok") else { return }
            }
        }
    }

    private func came(_ lines: [String]) {
        func header(_ name: String) -> String {
            lines.prefix { !$0.isEmpty }.first { $0.lowercased().hasPrefix("\(name): ") }
                .map { String($0.dropFirst(name.utf8.count + 2)) } ?? ""
        }
        let (id, subject) = (header("message-id"), header("subject"))
        log.withLock { log in
            log.count += 1
            log.mails[id, default: []].append(lines.joined(separator: "\n"))
            log.subjects[subject, default: []].insert(id)
        }
    }
}
