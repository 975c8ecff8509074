@echo off
rem Set up what is missing, then run lucebox with the given arguments; without any it opens the application.
rem Outcomes are asked for by errorlevel, line by line: that holds in every cmd.
setlocal
set "HERE=%~dp0"
set "VENV_PYTHON=%HERE%.venv\Scripts\python.exe"
set "PYTHON="

if not exist "%VENV_PYTHON%" goto find
findstr /c:"\"complete\": true" "%HERE%.venv\lucebox-setup.json" >nul 2>&1
if errorlevel 1 goto find
"%VENV_PYTHON%" -c "" >nul 2>&1
if errorlevel 1 goto find
set PYTHON="%VENV_PYTHON%"
goto found

:find
for %%v in (3.13 3.12 3.11 3.14) do if not defined PYTHON call :try %%v
if defined PYTHON goto found
python -c "import sys, ctypes, ensurepip, sqlite3, ssl, venv, zlib; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))" >nul 2>&1
if errorlevel 1 goto missing
set "PYTHON=python"

:found
%PYTHON% "%HERE%installers\setup.py"
if not "%errorlevel%"=="0" goto failed
"%VENV_PYTHON%" -P -m engine.cli %*
exit /b %errorlevel%

:try
py -%1 -c "import ctypes, ensurepip, sqlite3, ssl, venv, zlib" >nul 2>&1
if not errorlevel 1 set "PYTHON=py -%1"
exit /b 0

:missing
echo Python 3.11, 3.12, 3.13 or 3.14 was not found. Install Python 3.13, then run this again:
echo.
echo     winget install Python.Python.3.13
echo.

:failed
if "%~1"=="" pause
exit /b 1
