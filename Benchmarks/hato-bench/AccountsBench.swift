import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Very many accounts: their import, the start with them, look-ups, pages, their export; and very many waiting mails.
struct AccountsBench: Sendable {
    private static let pageRows = 1_000
    private static let mailsMax = 100_000

    var settings: BenchSettings
    var folder: DataFolder

    func rows() async throws -> Table {
        var table = Table()
        let bench = self
        table.add(
            try await TestStack.run(folder.setting) { stack in
                try await Blocking.run { try bench.importRow(stack) }
            })
        // A mail server that never says anything: mails wait.
        let (server, port) = try RawSocket.listening()
        defer { server.close() }
        let mail = ["--mail-url", "smtp://127.0.0.1:\(port)", "--mail-tls", "none", "--mail-from", "bench@example.com"]
        var starts: [Double] = []
        for number in 1...settings.windows {
            let begin = Clock.now()
            let isLast = number == settings.windows
            table.rows += try await TestStack.run(folder.setting + mail) { stack in
                starts.append(Double(Clock.now() - begin) / 1e9)
                return isLast ? try await Blocking.run { try bench.startedRows(stack) } : Table()
            }.rows
        }
        Progress.say("  the starts: \(starts.map(Figure.text).joined(separator: ", ")) s")
        table.add(
            Table.Row(
                what: "auth: start of the stack with \(count) accounts", value: starts.median, unit: "s",
                goals: [Goal(.value, .atMost(2))]))
        return table
    }

    private var count: String { Figure.text(Double(settings.accounts)) }

    private func startedRows(_ stack: TestStack) throws -> Table {
        var table = Table()
        table.add("auth: look-up by e-mail among \(count) accounts", try lookUps(stack), "/s", goals: Self.lookUpGoals)
        table.add("auth: a page of 1,000 of \(count) accounts", try pages(stack), "/s", goals: Self.pageGoals)
        for row in try exportRows(stack) { table.add(row) }
        table.add(try mailRow(stack))
        return table
    }

    // MARK: Import

    private func importRow(_ stack: TestStack) throws -> Table.Row {
        let socket = try signedIn(stack)
        defer { socket.close() }
        let reader = LineReader(socket)
        let start = Clock.now()
        // One call at a time, as `hato-auth users import` sends them.
        for first in stride(from: 0, to: settings.accounts, by: Self.pageRows) {
            try socket.send(page(first..<min(first + Self.pageRows, settings.accounts)))
            let response = String(decoding: try reader.result(of: Auth.Users.Import.method), as: UTF8.self)
            guard response.contains("\"errors\":[]") else { throw BenchError(String(response.prefix(1_000))) }
        }
        let rate = Double(settings.accounts) / (Double(Clock.now() - start) / 1e9)
        return Table.Row(
            what: "auth: import of \(count) accounts, 1,000 a call", value: rate, unit: "accounts/s",
            goals: [Goal(.value, .atLeast(5_000))])
    }

    private func page(_ numbers: Range<Int>) -> [UInt8] {
        var out = Array("{\"users\":[".utf8)
        for number in numbers {
            if number > numbers.lowerBound { out.append(UInt8(ascii: ",")) }
            out += "{\"uid\":\"\(Self.uid(number))\",\"email\":\"\(Self.email(number))\",\"emailVerified\":true,".utf8
            out += "\"displayName\":\"マスオさん\",\"createdAt\":\(1_700_000_000_000 + number),".utf8
            // Each another text, so that storage does not compress them to nothing.
            out += "\"passwordHash\":\"$2b$10$abcdefghijklmnopqrstuu\(Self.mixed(number))\"}".utf8
        }
        return ChatRequests.line(Auth.Users.Import.method, out + Array("]}".utf8))
    }

    /// 31 characters of a hash.
    private static func mixed(_ number: Int) -> String {
        var random = SeededRandom(seed: UInt64(number))
        let digits = String(random.next(), radix: 36) + String(random.next(), radix: 36) + String(random.next())
        return String(digits.prefix(31).dropLast()) + "u"
    }

    /// Not in the order of the import.
    private static func uid(_ number: Int) -> String {
        var random = SeededRandom(seed: UInt64(number))
        return "u\(String(random.next(), radix: 36))n\(number)"
    }

    private static func email(_ number: Int) -> String { "masuo\(number)@example.com" }

    // MARK: Reads

    private static let lookUpGoals = [Goal(.p50, .atMost(1_000)), Goal(.p99, .atMost(1_000))]
    private static let pageGoals = [Goal(.p50, .atMost(10_000))]

    private func lookUps(_ stack: TestStack) throws -> Window {
        var random = SeededRandom(seed: 1)
        let requests = (0..<16_384).map { _ in
            let number = Int(random.next() % UInt64(settings.accounts))
            return ChatRequests.line(
                Auth.Users.Get.method, EncodedJSON(["email": .string(Self.email(number))]).bytes)
        }
        return try windows(stack, requests)
    }

    private func pages(_ stack: TestStack) throws -> Window {
        var random = SeededRandom(seed: 2)
        let requests = (0..<1_024).map { _ in
            let after = "u\(String(random.next() >> 2, radix: 36))"
            return ChatRequests.line(
                Auth.Users.List.method,
                EncodedJSON(["after": .string(after), "limit": .number(Double(Self.pageRows))]).bytes)
        }
        return try windows(stack, requests)
    }

    private func windows(_ stack: TestStack, _ requests: [[UInt8]]) throws -> Window {
        var load = try RawLoad(
            at: stack.configuration(.auth).port, as: stack.administratorKey, LoadShape(1, 1), requests: requests)
        defer { load.close() }
        return try load.windows(settings)
    }

    // MARK: Export

    private func exportRows(_ stack: TestStack) throws -> [Table.Row] {
        let socket = try signedIn(stack)
        defer { socket.close() }
        let reader = LineReader(socket)
        var rows: [Table.Row] = []
        // The second one finds the caches of the store full: what it adds is its own.
        for again in ["", " again"] {
            let watch = try MemoryWatch(stack.processIdentifier)
            let start = Clock.now()
            var (after, pages) = ([UInt8]?.none, 0)
            repeat {
                let params = after.map { "{\"after\":\"\(String(decoding: $0, as: UTF8.self))\"}" } ?? "{}"
                try socket.send(ChatRequests.line(Auth.Users.Export.method, Array(params.utf8)))
                let line = try reader.result(of: Auth.Users.Export.method)
                after = line.withUnsafeBytes { ResponseText.member(ResponseText.after, of: $0) }
                pages += 1
            } while after != nil
            guard pages >= settings.accounts / Self.pageRows else { throw BenchError("\(pages) pages of an export") }
            let rate = Double(settings.accounts) / (Double(Clock.now() - start) / 1e9)
            let before = Figure.text(Double(watch.first >> 20))
            let growth = Double(watch.growth()) / Double(1 << 20)
            rows += [
                Table.Row(what: "auth: export of \(count) accounts\(again)", value: rate, unit: "accounts/s"),
                Table.Row(
                    what: "auth: memory beside \(before) MB, export of \(count) accounts\(again)", value: growth,
                    unit: "MB", goals: again.isEmpty ? [] : [Goal(.value, .atMost(50))]),
            ]
        }
        return rows
    }

    // MARK: Mails

    private func mailRow(_ stack: TestStack) throws -> Table.Row {
        let mails = min(settings.accounts, Self.mailsMax)
        let socket = try signedIn(stack)
        defer { socket.close() }
        let (watch, cacheBefore) = (try MemoryWatch(stack.processIdentifier), try blockCacheBytes(socket))
        let start = Clock.now()
        var calls = PipelinedCalls(socket, Auth.Code.Request.method, inFlightMax: 64)
        for number in 0..<mails {
            let params = "{\"type\":\"passwordReset\",\"email\":\"\(Self.email(number))\"}"
            try calls.send(ChatRequests.line(Auth.Code.Request.method, Array(params.utf8)))
        }
        try calls.finish()
        let seconds = Double(Clock.now() - start) / 1e9
        let rate = Figure.text(Double(mails) / seconds)
        // It has a limit of its own, and keeps the accounts that were looked up.
        let cache = max(0, try blockCacheBytes(socket) - cacheBefore)
        let (before, cached) = (Figure.text(Double(watch.first >> 20)), Figure.text((cache / 1_048_576).rounded()))
        let growth = (Double(watch.growth()) - cache) / 1_048_576
        return Table.Row(
            what: "auth: memory beside \(before) MB and \(cached) MB more block cache, "
                + "\(Figure.text(Double(mails))) mails that wait (\(rate)/s written)",
            value: growth, unit: "MB", goals: [Goal(.value, .atMost(50))])
    }

    private func blockCacheBytes(_ socket: RawSocket) throws -> Double {
        let name = "hato_auth_store_block_cache_bytes"
        let answer = try JSONParser.parse(Array(try socket.call(Service.Metrics.method).utf8))
        let lines = (answer.object?["result"]?.object?["text"]?.string ?? "").split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("\(name) ") || $0.hasPrefix("\(name){") }),
            let bytes = line.split(separator: " ").last.flatMap({ Double($0) })
        else { throw BenchError("service.metrics has no \(name)") }
        return bytes
    }

    private func signedIn(_ stack: TestStack) throws -> RawSocket {
        try RawSocket(port: stack.configuration(.auth).port, signedInWith: stack.administratorKey)
    }
}
