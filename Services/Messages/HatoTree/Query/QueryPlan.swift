public import HatoModel
import HatoRules

/// How a query is executed.
public enum QueryPlan: Sendable, Hashable {
    /// Children are stored in key order: `$key` needs no index.
    case keys
    /// By the automatic index of priorities; children without one come first, in key order.
    case priorities
    case index(IndexDefinition)
    /// No index is declared and built: every child is read and sorted.
    case everyChild

    /// Whether an index is used, so that not every child is read.
    public var isIndexed: Bool { self != .everyChild }

    /// The plan of a query with the available indexes.
    public init(_ query: TreeQuery, at path: TreePath, in catalog: IndexCatalog) {
        switch query.order {
        case .key: self = .keys
        case .priority: self = .priorities
        case .value: self = catalog.ready(for: path, .value).map(QueryPlan.index) ?? .everyChild
        case .child(let child): self = catalog.ready(for: path, .child(child)).map(QueryPlan.index) ?? .everyChild
        }
    }

    /// The plan of a read, which must have an index.
    ///
    /// - Throws: `QueryError.indexNotDefined`.
    public static func indexed(
        _ query: TreeQuery, at path: TreePath, in catalog: IndexCatalog
    ) throws(QueryError) -> QueryPlan {
        let plan = QueryPlan(query, at: path, in: catalog)
        guard plan.isIndexed else {
            throw .indexNotDefined(on: query.order == .value ? ".value" : query.order.text, path: path)
        }
        return plan
    }
}

/// Why a query is refused.
public enum QueryError: Error, Sendable, Hashable {
    /// Reads need an index that is declared and built.
    case indexNotDefined(on: String, path: TreePath)
}

extension QueryError: RPCErrorConvertible {
    public var rpcError: RPCError {
        switch self {
        case .indexNotDefined(let on, let path):
            .failedPrecondition(
                reason: "index_not_defined",
                "Index not defined, add \".indexOn\": \"\(on)\", for path \"\(path)\", to the rules",
                data: ["indexOn": .string(on), "path": .string(path.text)])
        }
    }
}
