import ArgumentParser
import Foundation
import HatoModel
import HatoRPC
import Testing

@testable import HatoCommand

private enum MessagesTarget: CommandTarget {
    static let service = "messages"
    static let port = 7702
    static let methods: [any RPCRequest.Type] = []
}

@Suite struct ClientSettingsTests {
    private func settings(_ arguments: [String], _ environment: [String: String] = [:]) throws -> ClientSettings {
        try ClientSettings(try ClientOptions.parse(arguments), MessagesTarget.self, environment: environment)
    }

    private func code(_ body: () throws -> Void) -> CommandFailure.Code? {
        do {
            try body()
            return nil
        } catch { return CommandFailure(error).code }
    }

    private func file(_ text: String) throws -> String {
        let url = FileManager.default.temporaryDirectory.appending(path: "hato-\(UUID().uuidString).key")
        try Data(text.utf8).write(to: url)
        return url.path
    }

    @Test func defaultIsTheServicesPortOnLoopback() throws {
        let settings = try settings([])
        #expect(settings.configuration.host == "127.0.0.1")
        #expect(settings.configuration.port == 7702)
        #expect(settings.configuration.tls == nil)
        #expect(settings.credential == nil)
        #expect(settings.speaksAs == nil)
    }

    @Test func flagsWinOverTheEnvironment() throws {
        let environment = ["HATO_MESSAGES_SERVER": "a:1", "HATO_TOKEN": "t", "HATO_AUTH_SERVER": "b:2"]
        #expect(try settings([], environment).configuration.host == "a")
        #expect(try settings([], environment).credential == "t")
        #expect(try settings(["--server", "[::1]:2"], environment).configuration.host == "::1")
        #expect(try settings(["--token", "u"], environment).credential == "u")
    }

    @Test func administratorKeyIsTheFirstOfItsFile() throws {
        let path = try file("\n  first-key \nsecond-key\n")
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(try settings(["--admin-key-file", path]).credential == "first-key")
        #expect(try settings([], ["HATO_ADMIN_KEY_FILE": path]).credential == "first-key")
        #expect(try settings(["--token", "t"], ["HATO_ADMIN_KEY_FILE": path]).credential == "t")
    }

    @Test func unreadableKeyFileIsAnInputError() throws {
        #expect(code { _ = try settings(["--admin-key-file", "/nowhere/at/all"]) } == .inputOutput)
        let path = try file(" \n\n")
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(code { _ = try settings(["--admin-key-file", path]) } == .configuration)
    }

    @Test func impersonationNeedsAKey() throws {
        #expect(code { _ = try settings(["--as", "masuo"]) } == .usage)
        #expect(try settings(["--as", "masuo", "--token", "k"]).speaksAs == ["uid": "masuo"])
        #expect(try settings(["--as-nobody", "--token", "k"]).speaksAs == .some(.null))
    }

    @Test func optionsThatContradictAreRefused() {
        #expect(throws: (any Error).self) { try ClientOptions.parse(["--token", "a", "--admin-key-file", "b"]) }
        #expect(throws: (any Error).self) { try ClientOptions.parse(["--as", "a", "--as-nobody"]) }
        #expect(throws: (any Error).self) { try ClientOptions.parse(["--tls-certificate", "a"]) }
        #expect(throws: (any Error).self) { try ClientOptions.parse(["--timeout", "0"]) }
        #expect(code { _ = try settings(["--server", "no-port"]) } == .usage)
    }

    @Test func anyTLSOptionMeansTLS() throws {
        #expect(try settings(["--tls"]).configuration.tls == RPCClientTLS())
        #expect(try settings(["--tls-server-name", "auth"]).configuration.tls == RPCClientTLS(serverName: "auth"))
    }

    @Test func environmentTurnsTLSOn() throws {
        func tls(_ environment: [String: String], _ arguments: [String] = []) throws -> RPCClientTLS? {
            try settings(arguments, environment).configuration.tls
        }
        #expect(try tls(["HATO_TLS": "true"]) == RPCClientTLS())
        #expect(try tls(["HATO_TLS": "false"]) == nil)
        #expect(try tls(["HATO_TLS_SERVER_NAME": "auth"]) == RPCClientTLS(serverName: "auth"))
        #expect(try tls(["HATO_MESSAGES_TLS": "true"]) == RPCClientTLS())
        #expect(try tls(["HATO_AUTH_TLS": "true"]) == nil)
        let both = ["HATO_TLS_SERVER_NAME": "a", "HATO_MESSAGES_TLS_SERVER_NAME": "b"]
        #expect(try tls(both) == RPCClientTLS(serverName: "b"))
        #expect(try tls(both, ["--tls-server-name", "c"]) == RPCClientTLS(serverName: "c"))
        #expect(try tls(["HATO_TLS": "false", "HATO_TLS_SERVER_NAME": "a"]) == nil)
        #expect(try tls(["HATO_TLS": "false"], ["--tls"]) == RPCClientTLS())
        #expect(code { _ = try tls(["HATO_TLS": "yes"]) } == .configuration)
        #expect(code { _ = try tls(["HATO_TLS_CERTIFICATE": "/no/cert.pem"]) } == .configuration)
        let error = #expect(throws: CommandFailure.self) { _ = try tls(["HATO_TLS_CA": "/no/ca.pem"]) }
        #expect(error?.message.hasPrefix("HATO_TLS_CA: /no/ca.pem cannot be read") == true)
    }

    @Test func filesOfTLSAreReadBeforeAnythingIsCalled() throws {
        let path = try file("no certificate")
        defer { try? FileManager.default.removeItem(atPath: path) }
        for (arguments, problem) in [
            (["--tls-ca", "/no/ca.pem"], "--tls-ca: /no/ca.pem cannot be read: no such file or directory"),
            (["--tls-certificate", path, "--tls-key", path], "--tls-certificate: \(path) holds no certificate in PEM"),
        ] {
            let error = #expect(throws: CommandFailure.self) { try settings(arguments) }
            #expect(error?.code == .inputOutput)
            #expect(error?.message.hasPrefix(problem) == true, "\(error?.message ?? "")")
        }
    }
}
