import HatoModel

/// A text of mails, named as the file that replaces it.
enum MailText: String, Sendable, CaseIterable {
    case verifyEmail
    case passwordReset
    /// For the holder of an address with which a new account was to be made (`signUpAlwaysAccepts`).
    case accountExists
    case signIn
    case changeEmail
    case invite
    case recoverEmail
    case signUp

    init(_ type: Auth.CodeType) {
        switch type {
        case .verifyEmail: self = .verifyEmail
        case .passwordReset: self = .passwordReset
        case .signIn: self = .signIn
        case .changeEmail: self = .changeEmail
        case .invite: self = .invite
        case .recoverEmail: self = .recoverEmail
        case .signUp: self = .signUp
        }
    }

    /// Of the code that it brings.
    var type: Auth.CodeType {
        switch self {
        case .verifyEmail: .verifyEmail
        case .passwordReset, .accountExists: .passwordReset
        case .signIn: .signIn
        case .changeEmail: .changeEmail
        case .invite: .invite
        case .recoverEmail: .recoverEmail
        case .signUp: .signUp
        }
    }
}

/// The texts that come with the service.
enum MailTexts {
    static let english: [MailText: String] = [
        .verifyEmail: """
        Confirm your e-mail address

        {{#digits}}
        To confirm that {{email}} is your address, enter this number:

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        To confirm that {{email}} is your address, open this link:

        {{link}}
        {{/digits}}

        If you did not ask for this, ignore this mail.

        {{app}}

        """,
        .passwordReset: """
        Set a new password

        {{#digits}}
        To set a new password for the account with {{email}}, enter this number:

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        To set a new password for the account with {{email}}, open this link:

        {{link}}
        {{/digits}}

        If you did not ask for this, ignore this mail: the password stays as it is.

        {{app}}

        """,
        .signUp: """
        Your new account

        {{#digits}}
        To make an account with {{email}}, enter this number:

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        To make an account with {{email}}, open this link:

        {{link}}
        {{/digits}}

        If you did not ask for this, ignore this mail: no account is made.

        {{app}}

        """,
        .accountExists: """
        You have an account already

        {{#digits}}
        {{email}} was entered to make an account, but there is one with it. If this was you, sign in. To set a new
        password, enter this number:

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{email}} was entered to make an account, but there is one with it. If this was you, sign in. To set a new
        password, open this link:

        {{link}}
        {{/digits}}

        A new password also removes sign-ins with other services, such as Google. If it was not you, ignore this mail:
        the account stays as it is.

        {{app}}

        """,
        .signIn: """
        Sign in

        {{#digits}}
        To sign in with {{email}}, enter this number:

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        To sign in with {{email}}, open this link:

        {{link}}
        {{/digits}}

        If you did not ask for this, ignore this mail, and do not pass it on.

        {{app}}

        """,
        .changeEmail: """
        Confirm your new e-mail address

        {{#digits}}
        To change the address of the account{{#oldEmail}} with {{oldEmail}}{{/oldEmail}} to {{newEmail}}, enter this number:

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        To change the address of the account{{#oldEmail}} with {{oldEmail}}{{/oldEmail}} to {{newEmail}}, open this link:

        {{link}}
        {{/digits}}

        If you did not ask for this, ignore this mail.

        {{app}}

        """,
        .invite: """
        Your new account

        There is an account for you with {{email}}. To set its password, enter this code:

        {{code}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        The code is valid for 7 days.

        {{app}}

        """,
        .recoverEmail: """
        Your e-mail address was changed

        {{email}} is no longer the address of your account: it was changed or removed. If this was not you, bring it back
        with this code:

        {{code}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        The code is valid for 7 days. It signs everyone out of the account, and the password must be set anew. If it was
        you, ignore this mail.

        {{app}}

        """,
    ]

    static let japanese: [MailText: String] = [
        .verifyEmail: """
        メールアドレスの確認

        {{#digits}}
        {{email}} がご自身のアドレスであることを確認するため、次の番号を入力してください。

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{email}} がご自身のアドレスであることを確認するため、次のリンクを開いてください。

        {{link}}
        {{/digits}}

        お心当たりのない場合は、このメールを無視してください。

        {{app}}

        """,
        .passwordReset: """
        パスワードの再設定

        {{#digits}}
        {{email}} のアカウントのパスワードを再設定するには、次の番号を入力してください。

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{email}} のアカウントのパスワードを再設定するには、次のリンクを開いてください。

        {{link}}
        {{/digits}}

        お心当たりのない場合は、このメールを無視してください。パスワードは変わりません。

        {{app}}

        """,
        .signUp: """
        アカウントの登録

        {{#digits}}
        {{email}} でアカウントを登録するには、次の番号を入力してください。

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{email}} でアカウントを登録するには、次のリンクを開いてください。

        {{link}}
        {{/digits}}

        お心当たりのない場合は、このメールを無視してください。アカウントは作成されません。

        {{app}}

        """,
        .accountExists: """
        すでにアカウントがあります

        {{#digits}}
        {{email}} で新規登録の操作がありましたが、このアドレスのアカウントはすでにあります。ご自身の場合は、ログインしてください。パスワードを再設定するには、次の番号を入力してください。

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{email}} で新規登録の操作がありましたが、このアドレスのアカウントはすでにあります。ご自身の場合は、ログインしてください。パスワードを再設定するには、次のリンクを開いてください。

        {{link}}
        {{/digits}}

        パスワードを再設定すると、Googleなど他のサービスでのログインは解除されます。お心当たりのない場合は、このメールを無視してください。アカウントは変わりません。

        {{app}}

        """,
        .signIn: """
        ログイン

        {{#digits}}
        {{email}} でログインするには、次の番号を入力してください。

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{email}} でログインするには、次のリンクを開いてください。

        {{link}}
        {{/digits}}

        お心当たりのない場合は、このメールを無視してください。番号やリンクを他の人に教えないでください。

        {{app}}

        """,
        .changeEmail: """
        新しいメールアドレスの確認

        {{#digits}}
        {{#oldEmail}}{{oldEmail}} の{{/oldEmail}}アカウントのメールアドレスを {{newEmail}} に変更するには、次の番号を入力してください。

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}
        {{/digits}}
        {{^digits}}
        {{#oldEmail}}{{oldEmail}} の{{/oldEmail}}アカウントのメールアドレスを {{newEmail}} に変更するには、次のリンクを開いてください。

        {{link}}
        {{/digits}}

        お心当たりのない場合は、このメールを無視してください。

        {{app}}

        """,
        .invite: """
        アカウントへのご招待

        {{email}} のアカウントが用意されました。パスワードを設定するには、次のコードを入力してください。

        {{code}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        このコードは7日間有効です。

        {{app}}

        """,
        .recoverEmail: """
        メールアドレスが変更されました

        アカウントのメールアドレス {{email}} が変更または削除されました。お心当たりのない場合は、次のコードで元に戻せます。

        {{code}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        このコードは7日間有効です。使用すると、すべての端末からログアウトされ、パスワードの再設定が必要になります。ご自身で変更された場合は、このメールを無視してください。

        {{app}}

        """,
    ]
}
