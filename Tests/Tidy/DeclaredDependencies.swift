import Testing

/// Every dependency that `Package.swift` declares for a target is imported by the target.
@Suite struct DeclaredDependencies {
    private let repository = Repository()

    @Test func everyDeclaredDependencyIsImported() throws {
        let manifest = try repository.text("Package.swift")
        let products = Dictionary(
            manifest.matches(of: #/let (\w+) = Target\.Dependency\.product\(name: "(\w+)"/#)
                .map { (String($0.1), String($0.2)) }
        ) { first, _ in first }
        let call =
            #/
            \n\x20{8}(library|command|unitTests|suite)\(\s*
            (?:of:\x20)?"([\w\-]+)"(?:,\s*in:\x20"([\w\/]+)")?,?\s*
            (?:\[([^\]]*)\])?
            /#
        let targets = manifest.matches(of: call)
        #expect(targets.count > 30 && products.count > 10)
        for target in targets {
            let name = String(target.2)
            let folder =
                switch target.1 {
                case "unitTests": "Tests/Unit/\(name)Tests"
                case "suite": "Tests/\(name)"
                default: "\(target.3 ?? "")/\(name)"
                }
            let files = repository.files(ending: ".swift", under: folder)
            #expect(!files.isEmpty, "\(folder) has no sources")
            let imports = try Set(files.flatMap { SourceFile(path: $0, text: try repository.text($0)).imports })
            for item in (target.4 ?? "").split(separator: ",").map({ $0.trimming(while: \.isWhitespace) })
            where !item.isEmpty {
                let dependency = item.hasPrefix("\"") ? item.filter { $0 != "\"" } : products[item] ?? item
                let module = dependency.replacing("-", with: "_")
                #expect(imports.contains(module), "\(folder) declares \(module) and does not import it")
            }
        }
    }
}

extension Substring {
    fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> String {
        String(drop(while: isTrimmed).reversed().drop(while: isTrimmed).reversed())
    }
}
