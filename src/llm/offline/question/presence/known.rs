//! Files that most projects have, as people call them.

/// Files that most projects have, as people call them.
pub(super) struct Known {
    /// In small letters, without hyphens.
    pub(super) called: &'static str,
    pub(super) named: &'static str,
    /// None if it is always hidden.
    pub(super) glob: &'static str,
    pub(super) hidden: &'static [&'static str],
}

pub(super) const KNOWN: &[Known] = &[
    Known {
        called: "dockerfile | dockerfiles | docker image | containerfile",
        named: "Dockerfile",
        glob: "{Dockerfile,Dockerfile.*,dockerfile,*.Dockerfile,*.dockerfile,Containerfile}",
        hidden: &[],
    },
    Known {
        called: "docker compose | docker compose configuration | docker compose config | compose file | docker compose setup",
        named: "Compose file",
        glob: "{docker-compose*.yml,docker-compose*.yaml,compose.yml,compose.yaml}",
        hidden: &[],
    },
    Known {
        called: "makefile | makefiles",
        named: "Makefile",
        glob: "{Makefile,makefile,GNUmakefile}",
        hidden: &[],
    },
    Known {
        called: "justfile",
        named: "justfile",
        glob: "{justfile,Justfile}",
        hidden: &[".justfile"],
    },
    Known {
        called: "readme | read me | liesmich | léeme | lisez moi",
        named: "README",
        glob: "{README,README.*,Readme.*,readme.*}",
        hidden: &[".github/README.md"],
    },
    Known {
        called: "contributing | contributing guide | contribution guide | contributing guidelines | contribution guidelines | \
                 contributor guide | contributors guide | beitragsleitfaden | anleitung zum mitmachen | guide contribution | guía \
                 contribución | guía contribuir | guide contributeurs",
        named: "CONTRIBUTING guide",
        glob: "{CONTRIBUTING,CONTRIBUTING.*,Contributing.*,contributing.*}",
        hidden: &[".github/CONTRIBUTING.md"],
    },
    Known {
        called: "license | licence | lizenz | lizenzdatei | licencia | license text | licence text",
        named: "license",
        glob: "{LICENSE,LICENSE[.-]*,LICENCE,LICENCE[.-]*,License,License.*,license,license.txt,license.md,COPYING,COPYING.*,UNLICENSE}",
        hidden: &[],
    },
    Known {
        called: "changelog | change log | changelogs | release notes | änderungsprotokoll | journal modifications | registro cambios",
        named: "change log",
        glob: "{CHANGELOG,CHANGELOG.*,Changelog,Changelog.*,changelog.*,ChangeLog,CHANGES,CHANGES.*,HISTORY,HISTORY.*,NEWS,NEWS.*,RELEASES.md}",
        hidden: &[],
    },
    Known {
        called: "code conduct | verhaltenskodex | code conduite | código conducta",
        named: "code of conduct",
        glob: "{CODE_OF_CONDUCT,CODE_OF_CONDUCT.*,code_of_conduct.*,code-of-conduct.*,CODE-OF-CONDUCT.*}",
        hidden: &[".github/CODE_OF_CONDUCT.md"],
    },
    Known {
        called: "security policy | security.md | sicherheitsrichtlinie | politique sécurité | política seguridad",
        named: "security policy",
        glob: "{SECURITY,SECURITY.*,security.md}",
        hidden: &[".github/SECURITY.md"],
    },
    Known {
        called: "codeowners | code owners",
        named: "CODEOWNERS",
        glob: "{CODEOWNERS}",
        hidden: &[".github/CODEOWNERS"],
    },
    Known {
        called: "gitignore",
        named: "`.gitignore`",
        glob: "",
        hidden: &[".gitignore"],
    },
    Known {
        called: "editorconfig | editor config",
        named: "`.editorconfig`",
        glob: "",
        hidden: &[".editorconfig"],
    },
    Known {
        called: "ci | ci configuration | ci config | ci pipeline | ci pipelines | ci setup | ci workflow | ci workflows | continuous \
                 integration | ci konfiguration | configuration ci | configuration intégration continue | intégration continue | \
                 configuración ci | integración continua | configuración integración continua",
        named: "CI configuration",
        glob: "{Jenkinsfile,azure-pipelines.yml,azure-pipelines.yaml,appveyor.yml,bitbucket-pipelines.yml,cloudbuild.yaml}",
        hidden: &[
            ".github/workflows",
            ".gitlab-ci.yml",
            ".circleci",
            ".travis.yml",
            ".cirrus.yml",
        ],
    },
    Known {
        called: "github actions | github workflow | github workflows | github action",
        named: "GitHub workflow",
        glob: "",
        hidden: &[".github/workflows"],
    },
];
