import ArgumentParser
import HatoModel
import Testing

@testable import HatoCommand

@Suite struct CommandFailureTests {
    static let codes: [(RPCError.Code, Int32)] = [
        (.unauthenticated, 77), (.permissionDenied, 77), (.unavailable, 69), (.internalError, 70), (.notFound, 1),
        (.alreadyExists, 1), (.failedPrecondition, 1), (.resourceExhausted, 1), (.invalidArgument, 1),
        (.invalidParams, 1),
        (.methodNotFound, 1), (.parseError, 1), (.invalidRequest, 1),
    ]

    @Test(arguments: codes) func everyWireErrorHasItsExitCode(code: RPCError.Code, expected: Int32) {
        #expect(CommandFailure(RPCError(code, reason: "x", "y")).code.rawValue == expected)
    }

    @Test func wrongArgumentsAreAUsageError() {
        #expect(CommandFailure(ArgumentError(reason: "x", "y") as any Error).code == .usage)
        #expect(CommandFailure(ValidationError("x") as any Error).code == .usage)
        #expect(CommandFailure(JSONError(.badNumber, at: 3) as any Error).code == .usage)
    }

    @Test func unexpectedErrorIsInternal() {
        struct Odd: Error {}
        #expect(CommandFailure(Odd() as any Error).code == .internal)
    }

    @Test func serversErrorIsReportedAsJSONToo() throws {
        let error = RPCError.notFound(reason: "USER_NOT_FOUND", "No such user")
        let lines = CommandFailure(error).report.split(separator: "\n")
        #expect(lines.first == "No such user")
        #expect(RPCError(json: try JSONParser.parse(String(lines[1]))) == error)
    }

    @Test func paramsMustBeAnObject() throws {
        #expect(try CallParams.read(nil) == [:])
        #expect(try CallParams.read(#"{"a":1}"#) == ["a": 1])
        for text in ["[1]", "1", "", "{", #"{"a":1,"a":1}"#] {
            let failure = #expect(throws: CommandFailure.self) { _ = try CallParams.read(text) }
            #expect(failure?.code == .usage)
        }
    }
}
