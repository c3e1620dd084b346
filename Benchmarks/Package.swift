// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that a build or test of Hato does not compile it.

let package = Package(
    name: "hato-benchmarks",
    platforms: [.macOS(.v26)],
    dependencies: [
        .package(name: "hato", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .systemLibrary(name: "CEpoll", path: "CEpoll"),
        .executableTarget(
            name: "hato-bench",
            dependencies: [
                "CEpoll",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "HatoIdentity", package: "hato"),
                .product(name: "HatoModel", package: "hato"),
                .product(name: "HatoRPC", package: "hato"),
                .product(name: "HatoTesting", package: "hato"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "hato-bench",
            swiftSettings: [
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("ExistentialAny"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
