import HatoModel
import Testing

/// The errors that methods declare exist in the code, and each is declared once by its method.
@Suite struct DeclaredErrors {
    private static let methods: [any RPCRequest.Type] =
        Service.builtIn + Auth.methods + Messages.methods + Notifier.methods

    /// The texts in quotation marks outside of declarations of errors.
    private func texts() throws -> Set<String> {
        let repository = Repository()
        var found: Set<String> = []
        for path in repository.sources
        where !path.hasSuffix("+Errors.swift") && !path.hasSuffix("/MethodError.swift") {
            for match in try repository.text(path).matches(of: #/"(\w+)"/#) { found.insert(String(match.1)) }
        }
        return found
    }

    @Test func everyDeclaredReasonIsInTheCodeThatReturnsIt() throws {
        let texts = try texts()
        for error in Self.methods.flatMap({ $0.errors }) + MethodError.general {
            for reason in error.reasons { #expect(texts.contains(reason), "no code returns \(reason)") }
        }
    }

    @Test func noMethodDeclaresAReasonTwice() {
        for method in Self.methods {
            var seen: Set<String> = []
            for error in method.errors {
                for reason in error.reasons {
                    #expect(seen.insert("\(error.code) \(reason)").inserted, "\(method.method): \(reason)")
                }
            }
        }
    }
}
