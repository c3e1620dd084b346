import Testing

/// Files, functions and lists of parameters are short enough to be understood at once: lines of code, without comments
/// and texts.
@Suite struct Sizes {
    private let repository = Repository()
    private let fileLinesMax = 400
    private let functionLinesMax = 70
    private let parametersMax = 4

    @Test func noFileIsTooLong() throws {
        for path in repository.allSwift where path != "Package.swift" {
            let lines = SourceFile(path: path, text: try repository.text(path)).codeLines
            #expect(lines <= fileLinesMax, "\(path) has \(lines) lines of code")
        }
    }

    @Test func noFunctionIsTooLong() throws {
        for path in repository.allSwift {
            for function in SourceFile(path: path, text: try repository.text(path)).functions {
                #expect(
                    function.codeLines <= functionLinesMax,
                    "\(path):\(function.line) has \(function.codeLines) lines:\(function.signature)")
            }
        }
    }

    @Test func manyParametersBecomeAStruct() throws {
        for path in repository.sources {
            for function in SourceFile(path: path, text: try repository.text(path)).functions
            // The memberwise initialiser of a struct that replaces many parameters lists its properties.
            where !function.signature.contains("init(") && !function.signature.contains("init<") {
                #expect(
                    function.parameters <= parametersMax,
                    "\(path):\(function.line) has \(function.parameters) parameters:\(function.signature)")
            }
        }
    }

    @Test func theCounterCounts() {
        let text = """
            struct A {
                // func notCode() {
                func one(a: Int, b: (Int, Int)) {
                    let text = "} {"
                }
                init() {}
            }
            """
        let file = SourceFile(path: "", text: text)
        #expect(file.codeLines == 6)
        #expect(file.functions.map(\.parameters) == [2, 0])
        #expect(file.functions.map(\.codeLines) == [3, 1])
    }
}
