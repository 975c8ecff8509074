@echo off
rem Set up what is missing, then run lucebox with the given arguments; without any it opens the application.
setlocal
set "HERE=%~dp0"
set "VENV_PYTHON=%HERE%.venv\Scripts\python.exe"
set "PYTHON="

if exist "%VENV_PYTHON%" (
    findstr /c:"\"complete\": true" "%HERE%.venv\lucebox-setup.json" >nul 2>&1 && set PYTHON="%VENV_PYTHON%"
)
if not defined PYTHON for %%v in (3.13 3.12 3.11 3.14) do (
    if not defined PYTHON py -%%v -c "import venv, ensurepip" >nul 2>&1 && set "PYTHON=py -%%v"
)
if not defined PYTHON (
    python -c "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))" >nul 2>&1 && set "PYTHON=python"
)
if not defined PYTHON (
    echo Python 3.11, 3.12 or 3.13 was not found. Install Python 3.13, then run this again:
    echo.
    echo     winget install Python.Python.3.13
    echo.
    if "%~1"=="" pause
    exit /b 1
)

%PYTHON% "%HERE%installers\setup.py"
if errorlevel 1 (
    if "%~1"=="" pause
    exit /b 1
)
"%VENV_PYTHON%" -P -m engine.cli %*
exit /b %errorlevel%
