#if os(Linux)
    import Foundation
    import Glibc
    import Synchronization

    /// Controls the syncs of logs below one folder. RocksDB's calls of `fdatasync` are redirected here (see
    /// `LibraryCall`); files of other folders are synced as usual.
    final class SyncFaults: Sendable {
        struct State {
            var synced: [String: Int] = [:]
            var attempts = 0
            var error: Int32?
            var compactionError: Int32?
        }

        let folder: String
        private let state = Mutex(State())
        /// While a test holds it, no sync continues.
        private let barrier = Mutex<Void>(())

        private static let armed = Mutex<[SyncFaults]>([])

        /// False where RocksDB is not a separate library: then its calls cannot be redirected.
        static let arePossible = LibraryCall.redirect(
            "fdatasync", of: "librocksdb.so", to: unsafeBitCast(faultyDataSync, to: UnsafeRawPointer.self))

        init(folder: String) {
            self.folder = folder
            Self.armed.withLock { $0.append(self) }
        }

        func disarm() { Self.armed.withLock { $0.removeAll { $0 === self } } }

        /// The number of attempted log syncs so far.
        var attempts: Int { state.withLock { $0.attempts } }

        /// Makes every later sync of a log fail with this error.
        func fail(with error: Int32) { state.withLock { $0.error = error } }

        /// Makes every later compaction fail with this error, when it syncs its output.
        func failCompactions(with error: Int32) { state.withLock { $0.compactionError = error } }

        /// Holds every sync while `body` runs, and passes it the number of bytes of each log that are certainly on
        /// disk.
        func withoutSyncs<Result>(_ body: (_ synced: [String: Int]) throws -> Result) rethrows -> Result {
            try barrier.withLock { _ in try body(state.withLock { $0.synced }) }
        }

        fileprivate static func of(_ path: String) -> SyncFaults? {
            armed.withLock { $0.first { path.hasPrefix($0.folder) } }
        }

        /// RocksDB compacts on threads of this name, and flushes memtables on others.
        private static var isCompacting: Bool {
            let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
            return name == "rocksdb:low\n"
        }

        fileprivate func syncTable(_ descriptor: Int32, _ original: (Int32) -> Int32) -> Int32 {
            guard let error = state.withLock({ $0.compactionError }), Self.isCompacting else {
                return original(descriptor)
            }
            errno = error
            return -1
        }

        fileprivate func sync(_ path: String, _ descriptor: Int32, _ original: (Int32) -> Int32) -> Int32 {
            let error = state.withLock { state in
                state.attempts += 1
                return state.error
            }
            if let error {
                errno = error
                return -1
            }
            // Bytes written while the sync runs may or may not be on disk: count those that existed before.
            var status = stat()
            fstat(descriptor, &status)
            // Noted before the barrier is released: otherwise its next holder takes a finished sync for one that never
            // ran.
            return barrier.withLock { _ in
                let code = original(descriptor)
                if code == 0 { state.withLock { $0.synced[path] = Int(status.st_size) } }
                return code
            }
        }
    }

    private let faultyDataSync: @convention(c) (Int32) -> Int32 = { descriptor in
        guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)"),
            let faults = SyncFaults.of(path)
        else { return fdatasync(descriptor) }
        if path.hasSuffix(".sst") { return faults.syncTable(descriptor, fdatasync) }
        guard path.hasSuffix(".log") else { return fdatasync(descriptor) }
        return faults.sync(path, descriptor, fdatasync)
    }

    /// Calls from one loaded library to another, which go through a table of addresses: the table of relocations in the
    /// library's file (ELF) has the position of each name's address.
    enum LibraryCall {
        /// False only where the library is not loaded: any other failure must show in the tests.
        static func redirect(_ name: String, of library: String, to function: UnsafeRawPointer) -> Bool {
            // Files in /proc have no size: they must be read to the end.
            guard let bytes = try? FileHandle(forReadingAtPath: "/proc/self/maps")?.readToEnd() else { return true }
            let maps = String(decoding: bytes, as: UTF8.self)
            for line in maps.split(separator: "\n") where line.contains(library) {
                let words = line.split(separator: " ")
                guard words.count == 6, words[2] == "00000000",
                    let start = words[0].split(separator: "-").first.flatMap({ UInt(String($0), radix: 16) }),
                    let file = FileManager.default.contents(atPath: String(words[5]))
                else { continue }
                let places = slots(of: name, in: file)
                for place in places { write(function, at: start + place) }
                return true
            }
            return false
        }

        private static func write(_ function: UnsafeRawPointer, at address: UInt) {
            let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
            mprotect(UnsafeMutableRawPointer(bitPattern: address & ~(page - 1)), Int(page), PROT_READ | PROT_WRITE)
            UnsafeMutablePointer<UnsafeRawPointer>(bitPattern: address)?.pointee = function
        }

        /// The offsets of the addresses of `name` from the start of the library.
        private static func slots(of name: String, in file: Data) -> [UInt] {
            func number<Number: FixedWidthInteger>(_ place: Int, as type: Number.Type = UInt64.self) -> Int {
                Int(
                    file[place..<place + MemoryLayout<Number>.size].reversed().reduce(0 as UInt64) {
                        $0 << 8 | UInt64($1)
                    })
            }
            /// Start, size and linked section of a section.
            func section(_ index: Int) -> (start: Int, size: Int, link: Int, type: Int) {
                let header = number(0x28) + index * number(0x3A, as: UInt16.self)
                return (
                    number(header + 0x18), number(header + 0x20), number(header + 0x28, as: UInt32.self),
                    number(header + 4, as: UInt32.self)
                )
            }
            let wanted = Data(name.utf8 + [0])
            var places: [UInt] = []
            for index in 0..<number(0x3C, as: UInt16.self) {
                let relocations = section(index)
                guard relocations.type == 4, relocations.link != 0 else { continue }
                let symbols = section(relocations.link)
                let names = section(symbols.link)
                for entry in stride(from: relocations.start, to: relocations.start + relocations.size, by: 24) {
                    let symbol = number(entry + 12, as: UInt32.self)
                    guard symbol != 0 else { continue }
                    let text = names.start + number(symbols.start + symbol * 24, as: UInt32.self)
                    if file[text..<min(text + wanted.count, file.count)] == wanted {
                        places.append(UInt(number(entry)))
                    }
                }
            }
            return places
        }
    }
#endif
