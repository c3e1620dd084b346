import Testing

/// Which room may know which (ARCHITECTURE.md): the arrows point one way.
@Suite struct Arrows {
    private let repository = Repository()

    /// Target folder → the rooms of ours it may import.
    static let allowed: [String: Set<String>] = [
        "Shared/HatoModel": [],
        "Shared/HatoRPC": ["HatoModel"],
        "Shared/HatoTesting": ["HatoModel", "HatoRPC"],
        "Shared/HatoRules": ["HatoModel"],
        "Shared/HatoStorage": [],
        "Shared/HatoRocksDB": ["HatoStorage", "CRocksDB"],
        "Shared/HatoIdentity": ["HatoModel"],
        "Shared/HatoRuntime": ["HatoModel", "HatoRPC"],
        "Shared/HatoCommand": ["HatoModel", "HatoRPC"],
        "Services/Messages/HatoTree": ["HatoModel", "HatoRules"],
        "Services/Messages/HatoMessages": [
            "HatoIdentity", "HatoModel", "HatoRPC", "HatoRules", "HatoStorage", "HatoTree",
        ],
        "Services/Auth/HatoAuth": ["HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage"],
        "Services/Notifier/HatoPush": ["HatoModel"],
        "Services/Notifier/HatoNotifier": [
            "HatoIdentity", "HatoModel", "HatoPush", "HatoRPC", "HatoRules", "HatoStorage",
        ],
        "Services/Auth/hato-auth": [
            "HatoAuth", "HatoCommand", "HatoIdentity", "HatoModel", "HatoRPC", "HatoRocksDB", "HatoRuntime",
            "HatoStorage",
        ],
        "Services/Messages/hato-messages": [
            "HatoCommand", "HatoIdentity", "HatoMessages", "HatoModel", "HatoRPC", "HatoRocksDB", "HatoRuntime",
            "HatoStorage",
        ],
        "Services/Notifier/hato-notifier": [
            "HatoCommand", "HatoIdentity", "HatoModel", "HatoNotifier", "HatoPush", "HatoRPC", "HatoRocksDB",
            "HatoRuntime", "HatoStorage",
        ],
        "Services/Dev/hato-dev": [
            "HatoAuth", "HatoIdentity", "HatoMessages", "HatoModel", "HatoNotifier", "HatoPush", "HatoRPC",
            "HatoRocksDB",
            "HatoRuntime", "HatoStorage",
        ],
    ]

    /// Packages from elsewhere that only these rooms may know.
    static let fenced: [String: Set<String>] = [
        "AsyncHTTPClient": ["HatoPush"],
        "NIOSSL": ["HatoRPC"],
        "NIOHTTP1": ["HatoRuntime", "HatoPush"],
        "NIOCore": ["HatoRPC", "HatoRuntime", "HatoPush"],
        "NIOPosix": ["HatoRPC", "HatoRuntime"],
        "CRocksDB": ["HatoRocksDB"],
        "ArgumentParser": ["HatoCommand", "hato-auth", "hato-messages", "hato-notifier", "hato-dev"],
    ]

    @Test func everyImportFollowsAnArrow() throws {
        for path in repository.sources {
            let folder = path.split(separator: "/").prefix(path.hasPrefix("Shared/") ? 2 : 3).joined(separator: "/")
            let target = folder.split(separator: "/").last.map(String.init) ?? ""
            let allowed = try #require(
                Self.allowed[folder], "\(folder) is a room without a line in the table of arrows")
            for module in SourceFile(path: path, text: try repository.text(path)).imports {
                if module.hasPrefix("Hato") || module == "CRocksDB" {
                    #expect(allowed.contains(module), "\(path) imports \(module)")
                }
                if let rooms = Self.fenced[module] {
                    #expect(rooms.contains(target), "\(path) imports \(module)")
                }
            }
        }
    }

    @Test func servicesMeetOnlyInTheModelAndOnTheWire() throws {
        let services = ["HatoAuth", "HatoMessages", "HatoNotifier"]
        for service in services {
            let folder = try #require(Self.allowed.keys.first { $0.hasSuffix("/\(service)") })
            let others = Set(services).subtracting([service])
            #expect(Self.allowed[folder]?.isDisjoint(with: others) == true)
        }
    }

    @Test func everyTargetIsTheFolderOfItsName() throws {
        let package = try repository.text("Package.swift")
        for folder in Self.allowed.keys where !repository.files(ending: ".swift", under: folder).isEmpty {
            let name = folder.split(separator: "/").last.map(String.init) ?? ""
            #expect(package.contains("\"\(name)\""), "\(folder) is no target")
        }
    }
}
