import Testing

/// Every public declaration has a docstring, which says what is thrown.
@Suite struct Documentation {
    private let repository = Repository()
    private let commentColumnsMax = 120

    /// Requirements of protocols of other packages, and of the protocols of methods: documented where they are
    /// declared.
    private static let requirements: Set<String> = [
        "method", "summary", "access", "effect", "example", "fields", "isSlow", "hasSideEffect", "isIdempotent",
        "methods", "notifications", "description", "hashValue", "json", "schema", "configuration", "rawValue",
        "startIndex", "endIndex", "makeAsyncIterator", "customMirror", "debugDescription", "hash",
        "write", "==", "<",
    ]
    private static let associatedTypes: Set<String> = ["Result", "Body", "Element", "Index", "Target", "Request"]

    @Test func everyPublicDeclarationHasADocstring() throws {
        let files = try lines()
        let conformances = Conformances(files.values)
        for (path, lines) in files {
            let fields = Set(
                lines.filter { $0.contains("\\.") }.flatMap { line in
                    line.matches(of: #/\\\.`?(\w+)`?[,)]/#).map { String($0.1) }
                })
            for index in lines.indices {
                guard let declaration = PublicDeclaration(lines, at: index), !declaration.isDocumented else { continue }
                switch declaration.kind {
                case "init" where declaration.isMemberwise: continue
                case "typealias" where Self.associatedTypes.contains(declaration.name): continue
                // The summary of a method, and the meanings of its fields.
                case "struct" where declaration.isMethod: continue
                case "var" where fields.contains(declaration.name): continue
                case "var", "let", "func":
                    if Self.requirements.contains(declaration.name) { continue }
                    if conformances.require(declaration.name, of: declaration.type) { continue }
                default: break
                }
                Issue.record("\(path):\(index + 1) has no docstring:\(lines[index])")
            }
        }
    }

    /// Typed errors are part of the declaration; requirements of protocols are documented in these.
    @Test func docstringsSayWhatIsThrown() throws {
        let files = try lines()
        let conformances = Conformances(files.values)
        for (path, lines) in files {
            for index in lines.indices {
                guard let declaration = PublicDeclaration(lines, at: index), declaration.throwsAnyError,
                    !declaration.docstring.contains("Throws"),
                    !conformances.require(declaration.name, of: declaration.type)
                else { continue }
                Issue.record("\(path):\(index + 1) does not say what it throws:\(lines[index])")
            }
        }
    }

    @Test func declarationsAreReadWithTheirTypeAndDocstring() throws {
        let source = """
            public protocol Reader: Sendable {
                func get(_ key: Int) throws -> Int
            }
            struct Rows<Key: Hashable>: Reader {
                public func get(_ key: Int) throws -> Int { key }
                /// Adds a row. Throws `RowError`.
                @discardableResult
                public func add(
                    _ key: Int, _ value: () throws -> Int
                ) async throws -> Int {
                    key
                }
                public func each(_ visit: () throws -> Void) rethrows {}
                public func typed() throws(RowError) {}
            }
            extension Other {
                public func get() {}
            }
            """
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let declarations = lines.indices.compactMap { PublicDeclaration(lines, at: $0) }
        #expect(declarations.map(\.name) == ["Reader", "get", "add", "each", "typed", "get"])
        #expect(declarations.map(\.throwsAnyError) == [false, true, true, false, false, false])
        #expect(declarations[2].docstring.contains("Throws"))
        let conformances = Conformances([lines])
        let required = declarations.map { conformances.require($0.name, of: $0.type) }
        #expect(required == [false, true, false, false, false, false])
    }

    private func lines() throws -> [String: [Substring]] {
        var files: [String: [Substring]] = [:]
        for path in repository.sources {
            files[path] = try repository.text(path).split(separator: "\n", omittingEmptySubsequences: false)
        }
        return files
    }

    @Test func commentsFitOnTheScreen() throws {
        for path in repository.allSwift {
            for (index, line) in try repository.text(path).split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated()
            where line.utf8.count > commentColumnsMax && line.count > commentColumnsMax
                && line.drop(while: { $0 == " " }).hasPrefix("//")
            {
                Issue.record("\(path):\(index + 1) has \(line.count) columns")
            }
        }
    }
}
