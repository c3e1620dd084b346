// swift-tools-version: 6.2
import PackageDescription

// One folder is one target is one module. ARCHITECTURE.md says what each is for and which dependencies it may have.

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
]

let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioWebSocket = Target.Dependency.product(name: "NIOWebSocket", package: "swift-nio")
let nioHTTPCompression = Target.Dependency.product(name: "NIOHTTPCompression", package: "swift-nio-extras")
let nioHTTP2 = Target.Dependency.product(name: "NIOHTTP2", package: "swift-nio-http2")
let nioHPACK = Target.Dependency.product(name: "NIOHPACK", package: "swift-nio-http2")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let x509 = Target.Dependency.product(name: "X509", package: "swift-certificates")
let asn1 = Target.Dependency.product(name: "SwiftASN1", package: "swift-asn1")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache")
let asyncHTTPClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")

/// What programs are linked with beside the system's allocator: release builds set HATO_ALLOCATOR to `jemalloc` where it
/// is installed.
let allocator: [LinkerSetting] =
    Context.environment["HATO_ALLOCATOR"] == "jemalloc" ? [.linkedLibrary("jemalloc")] : []

func library(
    _ name: String, in folder: String, _ dependencies: [Target.Dependency] = [], embedding: [String] = []
) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "\(folder)/\(name)", exclude: excluded(name),
        resources: embedding.map { .embedInCode($0) }, swiftSettings: settings)
}

func command(
    _ name: String, in folder: String, _ dependencies: [Target.Dependency], embedding: [String] = []
) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies, path: "\(folder)/\(name)", exclude: excluded(name),
        resources: embedding.map { .embedInCode($0) }, swiftSettings: settings)
}

func unitTests(of name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.init(stringLiteral: name)] + dependencies,
        path: "Tests/Unit/\(name)Tests", swiftSettings: settings)
}

func suite(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, path: "Tests/\(name)", exclude: exclude, swiftSettings: settings)
}

/// Pages beside the sources of a target.
func excluded(_ name: String) -> [String] {
    [
        "HatoRPC": ["METHODS.md"], "HatoRuntime": ["SETTINGS.md"], "hato-messages": ["Samples"],
        "hato-dev": ["Rules/chat.cases.json"],
    ][name] ?? []
}

let package = Package(
    name: "hato",
    platforms: [.macOS(.v26)],
    products: [
        .library(name: "HatoModel", targets: ["HatoModel"]),
        .library(name: "HatoRPC", targets: ["HatoRPC"]),
        .library(name: "HatoTesting", targets: ["HatoTesting"]),
        // For the benchmarks, which verify ID tokens as the services do.
        .library(name: "HatoIdentity", targets: ["HatoIdentity"]),
        .executable(name: "hato-auth", targets: ["hato-auth"]),
        .executable(name: "hato-messages", targets: ["hato-messages"]),
        .executable(name: "hato-notifier", targets: ["hato-notifier"]),
        .executable(name: "hato-gateway", targets: ["hato-gateway"]),
        .executable(name: "hato-dev", targets: ["hato-dev"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
    ],
    targets: [
        // The model and the transport.
        library("HatoModel", in: "Shared"),
        library("HatoRPC", in: "Shared", ["HatoModel", nioCore, nioPosix, nioTLS, nioSSL, logging]),
        library("HatoTesting", in: "Shared", ["HatoModel", "HatoRPC"]),

        // Shared by the services.
        library("HatoRules", in: "Shared", ["HatoModel"]),
        library("HatoStorage", in: "Shared"),
        .systemLibrary(
            name: "CRocksDB", path: "Shared/CRocksDB", pkgConfig: "rocksdb", providers: [.apt(["librocksdb-dev"])]),
        .target(name: "CRocksDBTables", dependencies: ["CRocksDB"], path: "Shared/CRocksDBTables"),
        .target(name: "CAllocator", path: "Shared/CAllocator", linkerSettings: allocator),
        .systemLibrary(name: "CZlib", path: "Shared/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "CCrypt", path: "Shared/CCrypt", pkgConfig: "libcrypt", providers: [.apt(["libcrypt-dev"])]),
        .systemLibrary(
            name: "CArgon2", path: "Shared/CArgon2", pkgConfig: "libargon2", providers: [.apt(["libargon2-dev"])]),
        library("HatoRocksDB", in: "Shared", ["HatoStorage", "CRocksDB", "CRocksDBTables", crypto]),
        library("HatoIdentity", in: "Shared", ["HatoModel", crypto]),
        library(
            "HatoRuntime", in: "Shared",
            [
                "HatoIdentity", "HatoModel", "HatoRPC", "CAllocator", unixSignals, yams, logging, metrics, nioCore,
                nioPosix, nioHTTP1,
            ]),
        library("HatoFollow", in: "Shared", ["HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage", logging]),
        library("HatoMail", in: "Shared", [nioCore, nioPosix, nioTLS, nioSSL]),
        library("HatoFetch", in: "Shared", ["HatoModel", asyncHTTPClient, nioCore, nioHTTP1, nioSSL]),
        library("HatoCommand", in: "Shared", ["HatoModel", "HatoRPC", argumentParser]),

        // The services.
        library("HatoTree", in: "Services/Messages", ["HatoModel", "HatoRules", crypto]),
        library(
            "HatoMessages", in: "Services/Messages",
            [
                "HatoFollow", "HatoIdentity", "HatoModel", "HatoRPC", "HatoRules", "HatoStorage", "HatoTree",
                logging, metrics,
            ]),
        library(
            "HatoAuth", in: "Services/Auth",
            [
                "CArgon2", "CCrypt", "HatoFetch", "HatoFollow", "HatoIdentity", "HatoMail", "HatoModel", "HatoRPC",
                "HatoStorage", crypto, cryptoExtras, logging, metrics, mustache,
            ]),
        library(
            "HatoPush", in: "Services/Notifier",
            ["HatoFetch", "HatoMail", "HatoModel", asyncHTTPClient, crypto, cryptoExtras, nioCore, nioHTTP1, nioSSL]),
        library(
            "HatoNotifier", in: "Services/Notifier",
            [
                "HatoFetch", "HatoFollow", "HatoIdentity", "HatoModel", "HatoPush", "HatoRPC", "HatoRules",
                "HatoStorage", crypto, logging, metrics,
            ], embedding: ["Shipped/chat.json", "Shipped/latest-message.json", "Shipped/quick-replies.json"]),

        library("HatoFirebase", in: "Services/Gateway", ["HatoModel"]),
        library(
            "HatoGateway", in: "Services/Gateway",
            [
                "HatoFirebase", "HatoIdentity", "HatoModel", "HatoRPC", nioCore, nioPosix, nioHTTP1, nioWebSocket,
                nioSSL,
                nioHTTPCompression, logging, metrics,
            ]),

        // The operators' commands.
        command(
            "hato-auth", in: "Services/Auth",
            [
                "HatoAuth", "HatoIdentity", "HatoModel", "HatoStorage", "HatoRocksDB", "HatoRuntime", "HatoCommand",
                argumentParser, logging,
            ]),
        command(
            "hato-messages", in: "Services/Messages",
            [
                "HatoMessages", "HatoIdentity", "HatoModel", "HatoRPC", "HatoRules", "HatoStorage", "HatoRocksDB",
                "HatoRuntime", "HatoCommand", "CZlib", argumentParser, logging,
            ]),
        command(
            "hato-notifier", in: "Services/Notifier",
            [
                "HatoNotifier", "HatoFetch", "HatoPush", "HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage",
                "HatoRocksDB", "HatoRuntime", "HatoCommand", argumentParser, logging,
            ]),
        command(
            "hato-gateway", in: "Services/Gateway",
            [
                "HatoFirebase", "HatoGateway", "HatoModel", "HatoRPC", "HatoRuntime", "HatoCommand", argumentParser,
            ]),
        command(
            "hato-dev", in: "Services/Dev",
            [
                "HatoAuth", "HatoMessages", "HatoNotifier", "HatoFetch", "HatoFirebase", "HatoGateway", "HatoIdentity",
                "HatoModel", "HatoRPC", "HatoStorage", "HatoRocksDB", "HatoRuntime", argumentParser, logging,
            ], embedding: ["Rules/chat.rules.json"]),

        // Tests.
        library("TestCertificates", in: "Tests/Support", [asn1, crypto, x509]),
        library("TestStores", in: "Tests/Support", ["HatoStorage"]),
        library("TestFirebase", in: "Tests/Support", ["HatoModel", "HatoRuntime", cryptoExtras]),
        library(
            "TestAuth", in: "Tests/Support",
            ["HatoFollow", "HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage", logging]),
        unitTests(of: "HatoModel", ["HatoTesting"]),
        unitTests(
            of: "HatoRPC",
            ["HatoModel", "HatoTesting", "TestCertificates", nioCore, nioEmbedded, nioPosix, nioSSL, logging]),
        unitTests(of: "HatoStorage", ["HatoTesting", "HatoRocksDB"]),
        unitTests(of: "HatoRules", ["HatoModel"]),
        unitTests(of: "HatoTree", ["HatoModel", "HatoRules", "HatoTesting"]),
        unitTests(of: "HatoFirebase", ["HatoModel"]),
        unitTests(
            of: "HatoGateway", ["HatoFirebase", "HatoModel", "HatoRPC", nioCore, nioPosix, nioHTTP1, logging]),
        unitTests(of: "HatoIdentity", ["HatoModel", "HatoTesting", crypto]),
        unitTests(
            of: "HatoMessages",
            [
                "HatoTesting", "TestAuth", "TestStores", "HatoModel", "HatoRPC", "HatoStorage", "HatoTree", "HatoRules",
                "HatoIdentity", logging,
            ]),
        unitTests(
            of: "HatoAuth",
            [
                "HatoFollow", "HatoMail", "HatoModel", "HatoTesting", "HatoRPC", "HatoStorage", "HatoIdentity",
                "TestStores", crypto, cryptoExtras, logging,
            ]),
        unitTests(of: "HatoFetch", ["HatoRuntime", asyncHTTPClient]),
        unitTests(
            of: "HatoPush",
            [
                "HatoFetch", "HatoMail", "HatoModel", "HatoRuntime", "HatoTesting", "TestCertificates",
                asyncHTTPClient, crypto, cryptoExtras, nioCore, nioHPACK, nioHTTP1, nioHTTP2, nioPosix, nioSSL,
            ]),
        unitTests(
            of: "HatoNotifier",
            [
                "HatoFetch", "HatoFollow", "HatoTesting", "TestAuth", "TestStores", "HatoModel", "HatoRPC",
                "HatoStorage",
                "HatoRocksDB", "HatoPush", "HatoIdentity", "HatoRuntime", cryptoExtras, logging,
            ]),
        unitTests(of: "HatoRuntime", ["HatoIdentity", "HatoModel", "HatoRPC", logging, metrics, nioCore, nioPosix]),
        unitTests(
            of: "HatoFollow",
            ["HatoIdentity", "HatoModel", "HatoRPC", "HatoStorage", "HatoTesting", "TestAuth", "TestStores", logging]),
        unitTests(of: "HatoMail", ["HatoTesting", "TestCertificates", nioCore, nioPosix, nioSSL]),
        unitTests(of: "HatoCommand", ["HatoModel", "HatoRPC", argumentParser, logging]),
        suite(
            "Conformance", ["HatoModel", "HatoTree", "HatoRules", "HatoStorage", "HatoRPC", "HatoMessages", logging],
            exclude: ["Accounts.md", "Tables", "README.md"]),
        suite(
            "Integration",
            [
                "HatoModel", "HatoRPC", "HatoRuntime", "HatoTesting", "TestCertificates", "TestFirebase", crypto,
                logging, nioCore, nioPosix, nioSSL,
            ], exclude: ["Gateway/Transcripts"]),
        suite(
            "Fault",
            [
                "HatoTesting", "HatoModel", "HatoRPC", "HatoRuntime", "TestFirebase", crypto, nioCore, nioHTTP1,
                nioPosix, nioWebSocket,
            ], exclude: ["README.md"]),
        suite(
            "Tidy",
            [
                "HatoAuth", "HatoFetch", "HatoGateway", "HatoMessages", "HatoModel", "HatoNotifier", "HatoRPC",
                "HatoRuntime", "hato-auth", "hato-dev", "hato-gateway", "hato-messages", "hato-notifier",
            ]),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20
)

// The images (Dockerfile) build parts of the package, so that a change compiles no more than it must. `services` leaves
// out the tests; `dependencies` contains the packages that the services use, compiled before our sources are copied.
if let choice = Context.environment["HATO_TARGETS"] {
    package.targets.removeAll { $0.type == .test || $0.path?.hasPrefix("Tests/") == true }
    if choice == "dependencies" {
        var products: [String: Target.Dependency] = [:]
        for dependency in package.targets.flatMap(\.dependencies) {
            if case .productItem(let name, _, _, _) = dependency { products[name] = dependency }
        }
        let used = products.sorted { $0.key < $1.key }.map(\.value)
        package.targets = [.executableTarget(name: "dependencies", dependencies: used, path: "dependencies")]
        package.products = []
    }
}
