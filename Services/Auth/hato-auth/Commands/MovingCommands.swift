import ArgumentParser
import HatoCommand
import HatoModel

extension UsersCommand {
    /// Accounts of another service, or of another Hato.
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import", abstract: "Writes the accounts in a file, with the hashes of their passwords.",
            discussion: """
                The file is what `firebase auth:export FILE.json` or `hato-auth users export` writes, or has a JSON \
                object for each account, as GoTrue's auth.users or PocketBase's users are dumped. - is stdin. Hashes \
                in base64 need --hash-config: the block that the Firebase console shows for the project. An account \
                that is wrong is reported by its number, and the others are written. After a failure, --continue \
                goes on where the import was cut off: the position is in FILE.progress. For administrators.
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file; - is stdin.") var file: String
        @Option(help: ArgumentHelp("How the hashes were made: hash_config { … }.", valueName: "file"))
        var hashConfig: String?
        @Flag(help: "Replace accounts that exist already.") var allowOverwrite = false
        @Flag(help: "Only say what would be refused.") var dryRun = false
        @Flag(name: .customLong("continue"), help: "Go on where an earlier import of this file was cut off.")
        var continues = false

        func run() async throws {
            try await CommandSession.run(options, AuthTarget.self) { client, output in
                let users = try UserFile(path: file)
                var start = try hashConfig.map { try HashConfig(file: $0).params } ?? JSONObject()
                if allowOverwrite { start["allowOverwrite"] = true }
                if dryRun { start["dryRun"] = true }
                let begun = try begin(users)
                var upload = UserUpload(client: client, output: output, start: start, counts: begun)
                let lost = try await send(users, &upload, output)
                if keepsProgress { MovingProgress.remove(of: file) }
                for (name, count) in lost.sorted(by: { $0.key < $1.key }) {
                    output.complain("\(count) accounts have \(name), which is not kept")
                }
                if upload.withoutMails > 0 {
                    output.complain("\(upload.withoutMails) accounts have an e-mail address that gets no mail")
                }
                try output.show([
                    "accounts": .number(Double(users.count)), "imported": .number(Double(upload.counts.imported)),
                    "refused": .number(Double(upload.counts.refused)),
                ])
                guard upload.counts.refused == 0 else {
                    throw CommandFailure(.refused, "\(upload.counts.refused) accounts were refused")
                }
            }
        }

        private var keepsProgress: Bool { file != "-" && !dryRun }

        /// Passes over the accounts that an earlier import has sent.
        private func begin(_ users: UserFile) throws -> MovingProgress {
            guard continues else { return MovingProgress(fileBytes: users.size ?? 0) }
            guard keepsProgress, let size = users.size else {
                throw ValidationError("--continue is for files, without --dry-run.")
            }
            let progress = try MovingProgress.read(of: file, size: size)
            while users.count < progress.accounts, try users.skip() {}
            return progress
        }

        /// Returns how many accounts have what is not kept, by its name.
        private func send(
            _ users: UserFile, _ upload: inout UserUpload, _ output: CommandOutput
        ) async throws -> [String: Int] {
            var lost: [String: Int] = [:]
            var bar = ProgressBar("import", total: users.size, output: output)
            var drawn = 0
            while let object = try users.next() {
                if users.bytesRead > drawn {
                    bar.advance(by: users.bytesRead - drawn)
                    drawn = users.bytesRead
                }
                let number = users.count
                let foreign: ForeignRow
                do throws(ForeignRow.Problem) {
                    foreign = try ForeignRow(object, now: WallClock.milliseconds())
                } catch {
                    upload.refuse(number, object["uid"]?.string ?? object["localId"]?.string, error.message)
                    continue
                }
                if upload.passesOver(foreign.row, number: number) { continue }
                for name in foreign.lost { lost[name, default: 0] += 1 }
                if upload.needsSending(before: foreign.row) { try await send(&upload, read: number - 1) }
                upload.add(foreign.row, number: number)
            }
            try await send(&upload, read: users.count)
            bar.finish()
            return lost
        }

        private func send(_ upload: inout UserUpload, read: Int) async throws {
            try await upload.send(read: read)
            if keepsProgress { try upload.counts.write(of: file) }
        }
    }

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Prints the accounts with the hashes of their passwords, a line each.",
            discussion: """
                `users import` reads the lines. Keep them as secret as the data folder. Without FILE they go to \
                stdout. --continue goes on after the last whole line of FILE. Accounts that change meanwhile may be \
                written as they were before or after. For administrators.
                """)

        @OptionGroup var options: ClientOptions
        @Argument(help: "The file, which is made.") var file: String?
        @Option(help: "Accounts a call.") var pageSize = 1_000
        @Flag(name: .customLong("continue"), help: "Go on where an earlier export to FILE was cut off.")
        var continues = false

        func run() async throws {
            try await CommandSession.run(options, AuthTarget.self) { client, output in
                if continues, file == nil { throw ValidationError("--continue needs the FILE that was begun.") }
                var target = try continues ? file.map { try ExportFile(begun: $0) } : nil
                var request = Auth.Users.Export(limit: pageSize)
                if continues { request.after = try target?.lastUid() }
                var bar = ProgressBar("export", total: nil, output: output)
                while true {
                    let page = try await client.call(request)
                    // A service that gives nothing leaves no file.
                    if target == nil, let file { target = try ExportFile(new: file) }
                    var lines: [UInt8] = []
                    for row in page.users { lines += row.json.encoded + [UInt8(ascii: "\n")] }
                    if let target { try target.write(lines) } else { try output.show(bytes: lines) }
                    bar.advance(by: page.users.count)
                    request.after = page.after
                    if page.after == nil { break }
                }
                bar.finish()
                try target?.finish()
            }
        }
    }
}
