<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>BinButton</name>
    <message numerus="yes">
        <source>Bin, %n model(s)</source>
        <translation>
            <numerusform>Bin, %n model</numerusform>
            <numerusform>Bin, %n models</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatModel</name>
    <message numerus="yes">
        <source>%n place(s) found</source>
        <translation>
            <numerusform>%n place found</numerusform>
            <numerusform>%n places found</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n message(s)</source>
        <translation>
            <numerusform>%n message</numerusform>
            <numerusform>%n messages</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Doctor</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DropOverlay</name>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>%n file</numerusform>
            <numerusform>%n files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>and %n more</numerusform>
            <numerusform>and %n more</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n text file(s) for the chat</source>
        <translation>
            <numerusform>%n text file for the chat</numerusform>
            <numerusform>%n text files for the chat</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DropTarget</name>
    <message numerus="yes">
        <source>Checking %n file(s)</source>
        <translation>
            <numerusform>Checking %n file</numerusform>
            <numerusform>Checking %n files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n more file(s) were left out too.</source>
        <translation>
            <numerusform>%n more file was left out too.</numerusform>
            <numerusform>%n more files were left out too.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) cannot be used</source>
        <translation>
            <numerusform>%n file cannot be used</numerusform>
            <numerusform>%n files cannot be used</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Inspector</name>
    <message numerus="yes">
        <source>%Ln token(s) reused from the last turn</source>
        <translation>
            <numerusform>%Ln token reused from the last turn</numerusform>
            <numerusform>%Ln tokens reused from the last turn</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>%n file</numerusform>
            <numerusform>%n files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>looking in known folders, %n found</source>
        <translation>
            <numerusform>looking in known folders, %n found</numerusform>
            <numerusform>looking in known folders, %n found</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Looking in known folders: %n model(s) found</source>
        <translation>
            <numerusform>Looking in known folders: %n model found</numerusform>
            <numerusform>Looking in known folders: %n models found</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{size} in %n folder(s)</source>
        <translation>
            <numerusform>{size} in %n folder</numerusform>
            <numerusform>{size} in %n folders</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SamplingPanel</name>
    <message numerus="yes">
        <source>{name}: %n setting(s) changed</source>
        <translation>
            <numerusform>{name}: %n setting changed</numerusform>
            <numerusform>{name}: %n settings changed</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>_FoundList</name>
    <message numerus="yes">
        <source>%n more</source>
        <translation>
            <numerusform>%n more</numerusform>
            <numerusform>%n more</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>chat</name>
    <message numerus="yes">
        <source>Saving %n chat(s)…</source>
        <translation>
            <numerusform>Saving %n chat…</numerusform>
            <numerusform>Saving %n chats…</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) saved as {name}</source>
        <translation>
            <numerusform>%n chat saved as {name}</numerusform>
            <numerusform>%n chats saved as {name}</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>models</name>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>%n file</numerusform>
            <numerusform>%n files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n model(s)</source>
        <translation>
            <numerusform>%n model</numerusform>
            <numerusform>%n models</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n projector(s)</source>
        <translation>
            <numerusform>%n projector</numerusform>
            <numerusform>%n projectors</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n draft(s)</source>
        <translation>
            <numerusform>%n draft</numerusform>
            <numerusform>%n drafts</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n text(s)</source>
        <translation>
            <numerusform>%n text</numerusform>
            <numerusform>%n texts</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n unknown</source>
        <translation>
            <numerusform>%n unknown</numerusform>
            <numerusform>%n unknown</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>draft, %n layer(s)</source>
        <translation>
            <numerusform>draft, %n layer</numerusform>
            <numerusform>draft, %n layers</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n expert(s)</source>
        <translation>
            <numerusform>%n expert</numerusform>
            <numerusform>%n experts</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n layer(s)</source>
        <translation>
            <numerusform>%n layer</numerusform>
            <numerusform>%n layers</numerusform>
        </translation>
    </message>
</context>
</TS>
