import HatoModel
import Testing

/// The valid values in errors about parameters.
@Suite struct ParameterExampleTests {
    private func shown<Request: RPCRequest>(_: Request.Type, _ error: RPCError) -> String? {
        (Request.showingWhatIsRight(error) as? RPCError)?.message
    }

    private static let secrets: Set<String> = ["password", "newPassword", "secret"]

    @Test func everyParameterHasAnExampleThatIsRight() throws {
        func check<Request: RPCRequest>(_ type: Request.Type) throws {
            let example = type.example.request.members
            for field in type.fields.list where !Self.secrets.contains(field.name) {
                var params = example
                guard let value = field.example ?? example[field.name] else {
                    Issue.record("\(type.method) has no example of \(field.name)")
                    continue
                }
                params[field.name] = value
                #expect(throws: Never.self, "\(type.method), \(field.name)") { try type.decode(params) }
            }
        }
        for type in Messages.methods + Auth.methods + Notifier.methods { try check(type) }
    }

    @Test func anErrorShowsTheExampleOfItsParameter() {
        let missing = RPCError.invalidParams("path", "'path' is missing")
        #expect(shown(Messages.Get.self, missing) == #"'path' is missing, e.g. "/chats/c1/title""#)
        let nested = RPCError.invalidArgument("query.orderBy", reason: "r", "Wrong")
        #expect(shown(Messages.Get.self, nested) == #"Wrong, e.g. {"orderBy":"date","limitToLast":50}"#)
        let unknown = RPCError.invalidParams("x", "'x' is no known parameter", reason: "unknown_parameter")
        #expect(
            shown(Messages.Databases.Drop.self, unknown)
                == #"'x' is no known parameter; known are database, e.g. {"database":"staging"}"#)
    }

    @Test func errorsWithAHintOrWithoutAParameterStayUnchanged() {
        let said = RPCError.invalidArgument("path", reason: "r", "Wrong, e.g. /a")
        #expect(shown(Messages.Get.self, said) == said.message)
        let other = RPCError.permissionDenied(path: "/a")
        #expect(shown(Messages.Get.self, other) == other.message)
    }

    @Test func noPasswordIsProposed() {
        let weak = RPCError.invalidArgument("password", reason: "WEAK_PASSWORD", "Too short")
        #expect(shown(Auth.SignUp.self, weak) == "Too short")
    }
}
