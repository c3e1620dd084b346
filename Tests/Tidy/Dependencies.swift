import Testing

/// The table of dependencies between targets (ARCHITECTURE.md), which point one way.
@Suite struct Dependencies {
    private let repository = Repository()

    /// Target folder → the targets of ours it may import.
    static let allowed: [String: Set<String>] = [
        "Shared/HatoModel": [],
        "Shared/HatoRPC": ["HatoModel"],
        "Shared/HatoTesting": ["HatoModel", "HatoRPC"],
        "Shared/HatoRules": ["HatoModel"],
        "Shared/HatoStorage": [],
        "Shared/HatoRocksDB": ["HatoStorage", "CRocksDB", "CRocksDBTables"],
        "Shared/HatoIdentity": ["HatoModel"],
        "Shared/HatoRuntime": ["CAllocator", "HatoIdentity", "HatoModel", "HatoRPC"],
        "Shared/HatoFollow": ["HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage"],
        "Shared/HatoMail": [],
        "Shared/HatoFetch": ["HatoModel"],
        "Shared/HatoCommand": ["HatoModel", "HatoRPC"],
        "Services/Messages/HatoTree": ["HatoModel", "HatoRules"],
        "Services/Messages/HatoMessages": [
            "HatoFollow", "HatoIdentity", "HatoModel", "HatoRPC", "HatoRules", "HatoStorage", "HatoTree",
        ],
        "Services/Auth/HatoAuth": [
            "HatoFetch", "HatoFollow", "HatoIdentity", "HatoMail", "HatoModel", "HatoRPC", "HatoStorage",
        ],
        "Services/Notifier/HatoPush": ["HatoFetch", "HatoMail", "HatoModel"],
        "Services/Notifier/HatoNotifier": [
            "HatoFetch", "HatoFollow", "HatoIdentity", "HatoModel", "HatoPush", "HatoRPC", "HatoRules", "HatoStorage",
        ],
        "Services/Gateway/HatoFirebase": ["HatoModel"],
        "Services/Gateway/HatoGateway": ["HatoFirebase", "HatoIdentity", "HatoModel", "HatoRPC"],
        "Services/Gateway/hato-gateway": [
            "HatoCommand", "HatoFirebase", "HatoGateway", "HatoModel", "HatoRPC", "HatoRuntime",
        ],
        "Services/Auth/hato-auth": [
            "HatoAuth", "HatoCommand", "HatoIdentity", "HatoModel", "HatoRPC", "HatoRocksDB", "HatoRuntime",
            "HatoStorage",
        ],
        "Services/Messages/hato-messages": [
            "HatoCommand", "HatoIdentity", "HatoMessages", "HatoModel", "HatoRPC", "HatoRocksDB", "HatoRules",
            "HatoRuntime", "HatoStorage",
        ],
        "Services/Notifier/hato-notifier": [
            "HatoCommand", "HatoFetch", "HatoIdentity", "HatoModel", "HatoNotifier", "HatoPush", "HatoRPC",
            "HatoRocksDB", "HatoRuntime", "HatoStorage",
        ],
        "Services/Dev/hato-dev": [
            "HatoAuth", "HatoFetch", "HatoFirebase", "HatoGateway", "HatoIdentity", "HatoMessages", "HatoModel",
            "HatoNotifier", "HatoRPC", "HatoRocksDB", "HatoRuntime", "HatoStorage",
        ],
    ]

    /// Test folder → the targets of ours it may import, besides the tested target.
    static let allowedInTests: [String: Set<String>] = [
        "Tests/Unit/HatoModelTests": ["HatoTesting"],
        "Tests/Support": ["HatoFollow", "HatoIdentity", "HatoModel", "HatoRPC", "HatoRuntime", "HatoStorage"],
        "Tests/Unit/HatoRPCTests": ["HatoModel", "HatoTesting"],
        "Tests/Unit/HatoStorageTests": ["HatoRocksDB", "HatoTesting"],
        "Tests/Unit/HatoRulesTests": ["HatoModel"],
        "Tests/Unit/HatoTreeTests": ["HatoModel", "HatoRules", "HatoTesting"],
        "Tests/Unit/HatoFirebaseTests": ["HatoModel"],
        "Tests/Unit/HatoGatewayTests": ["HatoFirebase", "HatoModel", "HatoRPC"],
        "Tests/Unit/HatoIdentityTests": ["HatoModel", "HatoTesting"],
        "Tests/Unit/HatoMessagesTests": [
            "HatoIdentity", "HatoModel", "HatoRPC", "HatoRules", "HatoStorage", "HatoTesting", "HatoTree",
        ],
        "Tests/Unit/HatoAuthTests": [
            "HatoFollow", "HatoIdentity", "HatoMail", "HatoModel", "HatoRPC", "HatoStorage", "HatoTesting",
        ],
        "Tests/Unit/HatoFetchTests": ["HatoRuntime"],
        "Tests/Unit/HatoPushTests": ["HatoFetch", "HatoMail", "HatoModel", "HatoRuntime", "HatoTesting"],
        "Tests/Unit/HatoNotifierTests": [
            "HatoFetch", "HatoFollow", "HatoIdentity", "HatoModel", "HatoPush", "HatoRPC", "HatoRocksDB", "HatoRuntime",
            "HatoStorage", "HatoTesting",
        ],
        "Tests/Unit/HatoRuntimeTests": ["HatoIdentity", "HatoModel", "HatoRPC"],
        "Tests/Unit/HatoFollowTests": ["HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage", "HatoTesting"],
        "Tests/Unit/HatoMailTests": ["HatoTesting"],
        "Tests/Unit/HatoCommandTests": ["HatoModel", "HatoRPC"],
        "Tests/Conformance": ["HatoMessages", "HatoModel", "HatoRPC", "HatoRules", "HatoStorage", "HatoTree"],
        // Tests that run the built programs link no code of the services.
        "Tests/Integration": ["HatoModel", "HatoRPC", "HatoRuntime", "HatoTesting"],
        "Tests/Fault": ["HatoModel", "HatoRPC", "HatoRuntime", "HatoTesting"],
        // Tests of the pages that are made from declarations, those of the executables' settings too.
        "Tests/Tidy": [
            "HatoAuth", "HatoFetch", "HatoGateway", "HatoMessages", "HatoModel", "HatoNotifier", "HatoRPC",
            "HatoRuntime",
        ],
        "Benchmarks/hato-bench": ["HatoIdentity", "HatoModel", "HatoRPC", "HatoTesting"],
    ]

    @Test func everyImportOfATestIsAllowed() throws {
        for path in repository.files(ending: ".swift", under: "Tests")
            + repository.files(ending: ".swift", under: "Benchmarks")
        where !path.hasSuffix("Package.swift") {
            let words = path.split(separator: "/")
            let folder = words.prefix(path.hasPrefix("Tests/Unit/") ? 3 : 2).joined(separator: "/")
            let tested = folder.split(separator: "/").last.map { String($0).replacing("Tests", with: "") } ?? ""
            let allowed = try #require(
                Self.allowedInTests[folder], "\(folder) has no entry in the table of dependencies")
            for module in SourceFile(path: path, text: try repository.text(path)).imports
            where module.hasPrefix("Hato") && module != tested {
                #expect(allowed.contains(module), "\(path) imports \(module)")
            }
        }
    }

    /// Packages of others that only these targets may import.
    static let restricted: [String: Set<String>] = [
        "AsyncHTTPClient": ["HatoFetch", "HatoPush"],
        "NIOSSL": ["HatoFetch", "HatoGateway", "HatoMail", "HatoPush", "HatoRPC"],
        "NIOHTTP1": ["HatoFetch", "HatoGateway", "HatoRuntime", "HatoPush"],
        "NIOHTTPCompression": ["HatoGateway"],
        "NIOWebSocket": ["HatoGateway"],
        "NIOCore": ["HatoFetch", "HatoGateway", "HatoMail", "HatoRPC", "HatoRuntime", "HatoPush"],
        "NIOPosix": ["HatoGateway", "HatoMail", "HatoRPC", "HatoRuntime"],
        // Providers are called through AsyncHTTPClient, which speaks HTTP/2 itself.
        "NIOHTTP2": [],
        "CAllocator": ["HatoRuntime"],
        "CArgon2": ["HatoAuth"],
        "Mustache": ["HatoAuth"],
        "CCrypt": ["HatoAuth"],
        "CRocksDB": ["HatoRocksDB"],
        "CRocksDBTables": ["HatoRocksDB"],
        "ArgumentParser": ["HatoCommand", "hato-auth", "hato-messages", "hato-notifier", "hato-gateway", "hato-dev"],
    ]

    @Test func everyImportIsAllowed() throws {
        for path in repository.sources {
            let folder = path.split(separator: "/").prefix(path.hasPrefix("Shared/") ? 2 : 3).joined(separator: "/")
            let target = folder.split(separator: "/").last.map(String.init) ?? ""
            let allowed = try #require(
                Self.allowed[folder], "\(folder) has no entry in the table of dependencies")
            for module in SourceFile(path: path, text: try repository.text(path)).imports {
                if module.hasPrefix("Hato") || module.hasPrefix("CRocksDB") {
                    #expect(allowed.contains(module), "\(path) imports \(module)")
                }
                if let targets = Self.restricted[module] {
                    #expect(targets.contains(target), "\(path) imports \(module)")
                }
            }
        }
    }

    @Test func servicesImportNoOtherService() throws {
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
